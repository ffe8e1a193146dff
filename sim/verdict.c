#include "sim/verdict.h"

#include <stdarg.h>
#include <stdio.h>

void sim_verdict_fail(struct sim_verdict *verdict, const char *invariant, const char *format, ...)
{
    char text[sizeof(verdict->text)];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    sim_world_trace(verdict->world, NULL, "BROKEN %s: %s", invariant, text);
    if (verdict->failed) return;
    verdict->failed = true;
    verdict->at_us = verdict->world->now_us;
    snprintf(verdict->invariant, sizeof(verdict->invariant), "%s", invariant);
    snprintf(verdict->text, sizeof(verdict->text), "%s", text);
}
