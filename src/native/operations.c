/* operations.c: the table of operations: who may ask for what, when (native-protocol.md 1.4, 2.1).
 */
#include "native/operations.h"
#include "base/assert.h"

#define ANY (NATIVE_NEW | NATIVE_GREETED | NATIVE_AUTHENTICATED)

static const struct native_operation operations[WIRE_TRANSFER + 1] = {
    [WIRE_HELLO] = {native_hello, NATIVE_NEW, .anywhere = true, .handshake = true},
    [WIRE_AUTH] = {native_auth, NATIVE_GREETED, .anywhere = true, .handshake = true},
    [WIRE_IDENTIFY_CLIENT] = {native_identify_client, NATIVE_GREETED | NATIVE_AUTHENTICATED,
                              .anywhere = true},
    [WIRE_GOODBYE] = {native_goodbye, ANY, .anywhere = true},
    [WIRE_HEARTBEAT_REQ] = {.states = ANY},
    [WIRE_HEARTBEAT_RESP] = {.states = ANY},
    [WIRE_AUTH_SCRAM] = {native_auth_scram, NATIVE_GREETED, .anywhere = true, .handshake = true},
    [WIRE_AUTH_SCRAM_FINAL] = {native_auth_scram_final, NATIVE_GREETED, .anywhere = true,
                               .handshake = true},

    [WIRE_PRODUCE] = {native_produce, NATIVE_AUTHENTICATED, .produces = true},
    [WIRE_PRODUCE_BATCH] = {native_produce_batch, NATIVE_AUTHENTICATED, .produces = true},
    [WIRE_PRODUCE_IDEMPOTENT] = {native_produce_idempotent, NATIVE_AUTHENTICATED, .produces = true},
    [WIRE_INIT_PRODUCER_ID] = {native_init_producer_id, NATIVE_AUTHENTICATED},
    [WIRE_FETCH] = {native_fetch, NATIVE_AUTHENTICATED},
    [WIRE_SUBSCRIBE] = {native_subscribe, NATIVE_AUTHENTICATED},
    [WIRE_COMMIT] = {native_commit, NATIVE_AUTHENTICATED},
    [WIRE_NACK] = {native_nack, NATIVE_AUTHENTICATED},
    [WIRE_CREATE_TOPIC] = {native_create_topic, NATIVE_AUTHENTICATED},
    [WIRE_DELETE_TOPIC] = {native_delete_topic, NATIVE_AUTHENTICATED},
    [WIRE_CREATE_PARTITIONS] = {native_create_partitions, NATIVE_AUTHENTICATED},
    [WIRE_ALTER_TOPIC_CONFIG] = {native_alter_topic_config, NATIVE_AUTHENTICATED},
    [WIRE_LIST_TOPICS] = {native_list_topics, NATIVE_AUTHENTICATED},
    [WIRE_DESCRIBE_TOPIC] = {native_describe_topic, NATIVE_AUTHENTICATED},
    [WIRE_LIST_OFFSETS] = {native_list_offsets, NATIVE_AUTHENTICATED},
    [WIRE_JOIN_GROUP] = {native_join_group, NATIVE_AUTHENTICATED},
    [WIRE_LEAVE_GROUP] = {native_leave_group, NATIVE_AUTHENTICATED},
    [WIRE_GROUP_HEARTBEAT] = {native_group_heartbeat, NATIVE_AUTHENTICATED},
    [WIRE_LIST_GROUPS] = {native_list_groups, NATIVE_AUTHENTICATED},
    [WIRE_DESCRIBE_GROUP] = {native_describe_group, NATIVE_AUTHENTICATED},
    [WIRE_DELETE_GROUP] = {native_delete_group, NATIVE_AUTHENTICATED},
    [WIRE_BEGIN_TXN] = {native_begin_txn, NATIVE_AUTHENTICATED},
    [WIRE_END_TXN] = {native_end_txn, NATIVE_AUTHENTICATED},
    [WIRE_TXN_OFFSET_COMMIT] = {native_txn_offset_commit, NATIVE_AUTHENTICATED},
    [WIRE_STATUS] = {native_status, NATIVE_AUTHENTICATED, .anywhere = true},
    [WIRE_TRANSFER] = {native_transfer, NATIVE_AUTHENTICATED},
};

const struct native_operation *native_operation_of(uint8_t opcode)
{
    if (opcode >= ARRAY_COUNT(operations) || operations[opcode].states == 0) return NULL;
    return &operations[opcode];
}
