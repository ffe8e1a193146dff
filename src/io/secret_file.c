/* secret_file.c: see secret_file.h. */
#include "io/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static enum status cannot_read(const char *path, int cause, struct error *error)
{
    enum status status = cause == ENOENT                     ? STATUS_NOT_FOUND
                         : cause == EACCES || cause == EPERM ? STATUS_DENIED
                                                             : STATUS_IO;
    return error_set(error, status,
                     "%.200s: cannot be read: %s (name a file that this user may read)", path,
                     strerror(cause));
}

/* At most `bytes_max`; a pipe comes in pieces. */
static enum status read_all(int fd, const char *path, char *text, size_t bytes_max, size_t *bytes,
                            struct error *error)
{
    *bytes = 0;
    while (*bytes < bytes_max) {
        ssize_t taken = read(fd, text + *bytes, bytes_max - *bytes);
        if (taken < 0 && errno == EINTR) continue;
        if (taken < 0) return cannot_read(path, errno, error);
        if (taken == 0) break;
        *bytes += (size_t)taken;
    }
    return STATUS_OK;
}

static enum status take(const char *path, char *text, size_t bytes, struct error *error)
{
    if (bytes > SECRET_FILE_BYTES_MAX) {
        return error_set(
            error, STATUS_TOO_LARGE,
            "%.200s: larger than %d bytes (it should hold the secret and nothing else)", path,
            SECRET_FILE_BYTES_MAX);
    }
    if (bytes > 0 && text[bytes - 1] == '\n') {
        bytes--;
        if (bytes > 0 && text[bytes - 1] == '\r') bytes--;
    }
    text[bytes] = '\0';
    if (bytes == 0) {
        return error_set(error, STATUS_INVALID, "%.200s: empty (it should hold the secret)", path);
    }
    if (strlen(text) != bytes) {
        return error_set(error, STATUS_INVALID, "%.200s: holds a zero byte (is it the right file?)",
                         path);
    }
    return STATUS_OK;
}

enum status secret_file_read(const char *path, char text[SECRET_FILE_BYTES_MAX + 1],
                             struct error *error)
{
    text[0] = '\0';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return cannot_read(path, errno, error);
    size_t bytes;
    enum status status = read_all(fd, path, text, SECRET_FILE_BYTES_MAX + 1, &bytes, error);
    close(fd);
    if (status == STATUS_OK) status = take(path, text, bytes, error);
    if (status != STATUS_OK) explicit_bzero(text, SECRET_FILE_BYTES_MAX + 1);
    return status;
}
