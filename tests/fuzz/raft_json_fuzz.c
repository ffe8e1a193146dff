/* Raft's messages and its state file, from bytes. The first byte picks the decoder. What decodes
 * must encode again, and the encoding must decode.                                            */
#include <stdlib.h>

#include "base/assert.h"
#include "base/json.h"
#include "raft/raft_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void decode_message(enum raft_message_kind kind, struct slice body)
{
    static struct raft_inbox inbox;
    struct error error;
    if (raft_message_decode(kind, body, &inbox, &error) != STATUS_OK) return;
    struct buffer out;
    buffer_init(&out, 0);
    raft_message_encode(&out, &inbox.id, &inbox.message);
    ASSERT(!buffer_failed(&out));
    static struct raft_inbox again;
    enum status status = raft_message_decode(kind, buffer_slice(&out), &again, &error);
    ASSERT(status == STATUS_OK);
    buffer_deinit(&out);
}

static void decode_state(struct slice file)
{
    struct raft_state *state = NULL;
    struct error error;
    if (raft_state_decode(file, &state, &error) != STATUS_OK) return;
    struct buffer out;
    buffer_init(&out, 0);
    raft_state_write(state, &out);
    struct raft_state *again = NULL;
    enum status status = raft_state_decode(buffer_slice(&out), &again, &error);
    ASSERT(status == STATUS_OK);
    free(again);
    free(state);
    buffer_deinit(&out);
}

/* As it came, and with a fitting checksum put on. */
static void decode_states(struct slice file)
{
    json_t *object = NULL;
    struct error error;
    decode_state(file);
    if (json_parse(file.data, file.bytes, &object, &error) != STATUS_OK) return;
    if (json_is_object(object)) {
        struct buffer sealed;
        buffer_init(&sealed, 0);
        json_seal(&sealed, object);
        decode_state(buffer_slice(&sealed));
        buffer_deinit(&sealed);
    }
    json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0) return 0;
    struct slice rest = {data + 1, bytes - 1};
    unsigned pick = data[0] % 9u;
    if (pick == 8) {
        decode_states(rest);
    } else {
        decode_message((enum raft_message_kind)(RAFT_MESSAGE_VOTE + pick), rest);
    }
    return 0;
}
