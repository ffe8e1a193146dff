/* errors.h: the broker's statuses as codes and texts of the native protocol (3.1, 3.2). */
#ifndef MOONMQ_NATIVE_ERRORS_H
#define MOONMQ_NATIVE_ERRORS_H

#include "broker/group_port.h"
#include "native/wire.h"

/* The one mapping. STATUS_OK is not asked for. */
enum wire_error_code native_error_code(enum status status);

/* One of the two not-leader texts, from what this replica knows. */
#define NATIVE_NOT_LEADER_BYTES 320
void native_not_leader_text(const struct group_view *view, char text[NATIVE_NOT_LEADER_BYTES]);

#endif
