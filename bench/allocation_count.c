/* allocation_count.c: preloaded into a broker by scaling.py: counts what it allocates.
 *
 * SIGUSR2 appends the count so far as a line to $ALLOCATION_COUNT_FILE.<pid>. Relies on glibc's own
 * names for the functions it stands before. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

static atomic_long allocations;

void *malloc(size_t bytes)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_realloc(old, bytes);
}

static void tell(int number)
{
    char path[512];
    (void)number;
    const char *stem = getenv("ALLOCATION_COUNT_FILE");
    if (stem == NULL) return;
    snprintf(path, sizeof(path), "%s.%d", stem, (int)getpid());
    FILE *file = fopen(path, "a");
    if (file == NULL) return;
    fprintf(file, "%ld\n", (long)allocations);
    fclose(file);
}

__attribute__((constructor)) static void begin(void)
{
    signal(SIGUSR2, tell);
}
