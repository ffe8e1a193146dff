/* secret_file.h: a password or token that lies in a file of its own, as Docker, Kubernetes and
 * systemd hand them out. A pipe will do, too. Thread: one that may wait. */
#ifndef MOONMQ_IO_SECRET_FILE_H
#define MOONMQ_IO_SECRET_FILE_H

#include <stddef.h>

#include "base/status.h"

#define SECRET_FILE_BYTES_MAX 4096

/* Reads all of it, less one newline at its end ("\n" or "\r\n"); `text` ends with a NUL.
 *
 * STATUS_NOT_FOUND, STATUS_DENIED, STATUS_IO  it cannot be read
 * STATUS_INVALID                              it is empty, no file, or holds a NUL
 * STATUS_TOO_LARGE                            over SECRET_FILE_BYTES_MAX
 * `error` names the path and the mend and holds nothing of the content; `text` is then empty. */
STATUS_MUST_CHECK
enum status secret_file_read(const char *path, char text[SECRET_FILE_BYTES_MAX + 1],
                             struct error *error);

#endif
