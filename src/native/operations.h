/* operations.h: the operations of the native protocol, by the file that holds them. */
#ifndef MOONMQ_NATIVE_OPERATIONS_H
#define MOONMQ_NATIVE_OPERATIONS_H

#include "native/request.h"

#define NATIVE_OPERATION(name) \
    void name(struct native_request *request, const union wire_message *message)

/* login.c */
NATIVE_OPERATION(native_hello);
NATIVE_OPERATION(native_identify_client);
NATIVE_OPERATION(native_auth);
NATIVE_OPERATION(native_goodbye);
/* login_scram.c */
NATIVE_OPERATION(native_auth_scram);
NATIVE_OPERATION(native_auth_scram_final);
/* produce.c */
NATIVE_OPERATION(native_produce);
NATIVE_OPERATION(native_produce_batch);
NATIVE_OPERATION(native_produce_idempotent);
/* init_producer_id.c */
NATIVE_OPERATION(native_init_producer_id);
/* fetch.c */
NATIVE_OPERATION(native_fetch);
/* subscribe.c */
NATIVE_OPERATION(native_subscribe);
/* commit.c */
NATIVE_OPERATION(native_commit);
/* nack.c */
NATIVE_OPERATION(native_nack);
/* topics.c */
NATIVE_OPERATION(native_create_topic);
NATIVE_OPERATION(native_delete_topic);
NATIVE_OPERATION(native_create_partitions);
NATIVE_OPERATION(native_alter_topic_config);
NATIVE_OPERATION(native_list_topics);
NATIVE_OPERATION(native_describe_topic);
/* list_offsets.c */
NATIVE_OPERATION(native_list_offsets);
/* transaction.c */
NATIVE_OPERATION(native_begin_txn);
NATIVE_OPERATION(native_end_txn);
NATIVE_OPERATION(native_txn_offset_commit);
/* membership.c */
NATIVE_OPERATION(native_join_group);
NATIVE_OPERATION(native_leave_group);
NATIVE_OPERATION(native_group_heartbeat);
/* groups.c */
NATIVE_OPERATION(native_list_groups);
NATIVE_OPERATION(native_describe_group);
NATIVE_OPERATION(native_delete_group);
/* group.c */
NATIVE_OPERATION(native_status);
NATIVE_OPERATION(native_transfer);

#endif
