#include "kafka/response.h"

#include <stdlib.h>

#include "base/assert.h"

void kafka_response_init(struct kafka_response *response, size_t bytes_max)
{
    *response = (struct kafka_response){0};
    buffer_init(&response->own, bytes_max);
}

void kafka_response_deinit(struct kafka_response *response)
{
    for (size_t i = 0; i < response->piece_count; i++) {
        shared_bytes_unref(response->pieces[i].shared);
    }
    free(response->pieces);
    buffer_deinit(&response->own);
    *response = (struct kafka_response){0};
}

void kafka_response_free(struct kafka_response *response)
{
    if (response == NULL) return;
    kafka_response_deinit(response);
    free(response);
}

static void add_piece(struct kafka_response *response, struct kafka_piece piece)
{
    if (piece.bytes == 0 || response->failed) return;
    if (response->piece_count == response->piece_capacity) {
        size_t capacity = response->piece_capacity == 0 ? 8 : response->piece_capacity * 2;
        struct kafka_piece *grown = realloc(response->pieces, capacity * sizeof(*grown));
        if (grown == NULL) {
            response->failed = true;
            return;
        }
        response->pieces = grown;
        response->piece_capacity = capacity;
    }
    if (piece.shared != NULL) shared_bytes_ref(piece.shared);
    response->pieces[response->piece_count++] = piece;
    response->bytes += piece.bytes;
}

static void list_own_bytes(struct kafka_response *response)
{
    size_t bytes = response->own.bytes - response->own_listed;
    add_piece(response, (struct kafka_piece){NULL, response->own_listed, bytes});
    response->own_listed = response->own.bytes;
}

/* A batch read in two halves of one block becomes one piece again. */
static bool extend_last_piece(struct kafka_response *response, const struct shared_bytes *shared,
                              size_t at, size_t bytes)
{
    if (response->piece_count == 0) return false;
    struct kafka_piece *last = &response->pieces[response->piece_count - 1];
    if (last->shared != shared || last->at + last->bytes != at) return false;
    last->bytes += bytes;
    response->bytes += bytes;
    return true;
}

void kafka_response_reference(struct kafka_response *response, struct shared_bytes *shared,
                              size_t at, size_t bytes)
{
    ASSERT(shared != NULL);
    ASSERT(at <= shared->bytes && bytes <= shared->bytes - at);
    list_own_bytes(response);
    size_t bytes_max = response->own.bytes_max;
    if (bytes_max != 0 && (response->bytes > bytes_max || bytes > bytes_max - response->bytes)) {
        response->failed = true;
    }
    if (bytes == 0 || response->failed) return;
    if (!extend_last_piece(response, shared, at, bytes)) {
        add_piece(response, (struct kafka_piece){shared, at, bytes});
    }
}

void kafka_response_finish(struct kafka_response *response)
{
    list_own_bytes(response);
}

bool kafka_response_failed(const struct kafka_response *response)
{
    return response->failed || buffer_failed(&response->own);
}

struct slice kafka_response_slice(const struct kafka_response *response, size_t index)
{
    ASSERT(index < response->piece_count);
    const struct kafka_piece *piece = &response->pieces[index];
    const uint8_t *data = piece->shared != NULL ? piece->shared->data : response->own.data;
    return (struct slice){data + piece->at, piece->bytes};
}

void kafka_response_copy(const struct kafka_response *response, struct buffer *out)
{
    for (size_t i = 0; i < response->piece_count; i++) {
        struct slice slice = kafka_response_slice(response, i);
        buffer_put(out, slice.data, slice.bytes);
    }
}
