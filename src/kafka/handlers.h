/* handlers.h: the handler of each API, in the file of its name; api.c is the only caller. */
#ifndef MOONMQ_KAFKA_HANDLERS_H
#define MOONMQ_KAFKA_HANDLERS_H

#include "kafka/request.h"

void produce_handle(struct kafka_request *request);
bool produce_cancel(struct kafka_request *request);
void fetch_handle(struct kafka_request *request);
void fetch_give_way(struct kafka_request *request);
bool fetch_cancel(struct kafka_request *request);
void list_offsets_handle(struct kafka_request *request);
void metadata_handle(struct kafka_request *request);
void offset_commit_handle(struct kafka_request *request);
void offset_fetch_handle(struct kafka_request *request);
void find_coordinator_handle(struct kafka_request *request);
void join_group_handle(struct kafka_request *request);
bool join_group_cancel(struct kafka_request *request);
void sync_group_handle(struct kafka_request *request);
bool sync_group_cancel(struct kafka_request *request);
void heartbeat_handle(struct kafka_request *request);
void leave_group_handle(struct kafka_request *request);
void describe_groups_handle(struct kafka_request *request);
void delete_groups_handle(struct kafka_request *request);
void offset_delete_handle(struct kafka_request *request);
void list_groups_handle(struct kafka_request *request);
void api_versions_handle(struct kafka_request *request);
void describe_client_quotas_handle(struct kafka_request *request);
void alter_client_quotas_handle(struct kafka_request *request);
void alter_client_quotas_refuse(struct kafka_request *request, enum status status);
void create_topics_handle(struct kafka_request *request);
void create_topics_refuse(struct kafka_request *request, enum status status);
void delete_topics_handle(struct kafka_request *request);
void delete_topics_refuse(struct kafka_request *request, enum status status);
void delete_records_handle(struct kafka_request *request);
void init_producer_id_handle(struct kafka_request *request);
void init_producer_id_refuse(struct kafka_request *request, enum status status);
void offset_for_leader_epoch_handle(struct kafka_request *request);
void describe_configs_handle(struct kafka_request *request);
void alter_configs_handle(struct kafka_request *request);
void alter_configs_refuse(struct kafka_request *request, enum status status);
void describe_log_dirs_handle(struct kafka_request *request);
void create_partitions_handle(struct kafka_request *request);
void create_partitions_refuse(struct kafka_request *request, enum status status);
void incremental_alter_configs_handle(struct kafka_request *request);
void incremental_alter_configs_refuse(struct kafka_request *request, enum status status);
void describe_producers_handle(struct kafka_request *request);
void write_txn_markers_handle(struct kafka_request *request);
void describe_cluster_handle(struct kafka_request *request);
void consumer_group_heartbeat_handle(struct kafka_request *request);
bool consumer_group_heartbeat_cancel(struct kafka_request *request);
void consumer_group_describe_handle(struct kafka_request *request);
void add_partitions_to_txn_handle(struct kafka_request *request);
void add_offsets_to_txn_handle(struct kafka_request *request);
void end_txn_handle(struct kafka_request *request);
void txn_offset_commit_handle(struct kafka_request *request);
void describe_transactions_handle(struct kafka_request *request);
void list_transactions_handle(struct kafka_request *request);
void elect_leaders_handle(struct kafka_request *request);
void elect_leaders_refuse(struct kafka_request *request, enum status status);
void alter_partition_reassignments_handle(struct kafka_request *request);
void alter_partition_reassignments_refuse(struct kafka_request *request, enum status status);
void list_partition_reassignments_handle(struct kafka_request *request);
void describe_acls_handle(struct kafka_request *request);
void create_acls_handle(struct kafka_request *request);
void delete_acls_handle(struct kafka_request *request);
void describe_user_scram_credentials_handle(struct kafka_request *request);
void describe_quorum_handle(struct kafka_request *request);
void describe_quorum_refuse(struct kafka_request *request, enum status status);
void update_features_handle(struct kafka_request *request);
void get_telemetry_subscriptions_handle(struct kafka_request *request);
void push_telemetry_handle(struct kafka_request *request);
void list_config_resources_handle(struct kafka_request *request);
void describe_topic_partitions_handle(struct kafka_request *request);

#endif
