/* copy.c: copies the records of partition 0 of one topic to another, each exactly once.
 *
 *     copy FROM TO HOST:PORT…
 *
 * Where the copy got to is committed for the group "copy" in the same transaction as the records:
 * both count, or neither does. Run it again after a crash: it goes on where it was. */
#include <moonmq.h>
#include <stdio.h>
#include <string.h>

#define RECORDS_MAX 500 /* of one transaction */

static const char *group_name = "copy";

/* Where to go on; 0 for a group that is new. */
static int find_position(struct moonmq_client *client, const char *topic, int64_t *offset,
                         struct moonmq_error *error)
{
    struct moonmq_group *group;
    int code = moonmq_describe_group(client, group_name, &group, error);
    *offset = 0;
    if (code == MOONMQ_GROUP_MISSING) return MOONMQ_OK;
    if (code != MOONMQ_OK) return code;
    for (size_t i = 0; i < group->offset_count; i++) {
        const struct moonmq_group_offset *known = &group->offsets[i];
        if (known->partition == 0 && strcmp(known->topic, topic) == 0) *offset = known->offset;
    }
    moonmq_group_free(group);
    return MOONMQ_OK;
}

static int copy_records(struct moonmq_client *client, char **argv,
                        const struct moonmq_records *records, struct moonmq_error *error)
{
    struct moonmq_message messages[RECORDS_MAX];
    for (size_t i = 0; i < records->count; i++) {
        const struct moonmq_record *record = &records->records[i];
        messages[i] = (struct moonmq_message){record->key, record->key_bytes, record->value,
                                              record->value_bytes};
    }
    int code = moonmq_begin_transaction(client, error);
    if (code == MOONMQ_OK) {
        code = moonmq_produce_batch(client, argv[2], messages, records->count, NULL, NULL, error);
    }
    struct moonmq_group_offset worked = {argv[1], 0, records->positions[0].next_offset};
    if (code == MOONMQ_OK) {
        code = moonmq_commit_in_transaction(client, group_name, &worked, 1, error);
    }
    if (code == MOONMQ_OK) return moonmq_commit_transaction(client, error);
    moonmq_abort_transaction(client, NULL);
    return code;
}

/* Until the end of the topic. The group is asked once: of a transaction that was committed just now
 * it may not have heard yet; of those of earlier runs it has, the producer's name sees to that. */
static int run(struct moonmq_client *client, char **argv, struct moonmq_error *error)
{
    struct moonmq_position from = {.partition = 0};
    int code = find_position(client, argv[1], &from.offset, error);
    size_t copied = 0, count = 1;
    while (code == MOONMQ_OK && count > 0) {
        struct moonmq_fetch fetch = {.topic = argv[1],
                                     .positions = &from,
                                     .position_count = 1,
                                     .records_max = RECORDS_MAX,
                                     .read_committed = true};
        struct moonmq_records *records;
        code = moonmq_fetch(client, &fetch, &records, error);
        if (code != MOONMQ_OK) break;
        count = records->count;
        if (count > 0) code = copy_records(client, argv, records, error);
        from.offset = records->positions[0].next_offset;
        moonmq_records_free(records);
        if (code == MOONMQ_OK) copied += count;
    }
    printf("%zu records copied\n", copied);
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: copy FROM TO HOST:PORT...\n");
        return 2;
    }
    struct moonmq_options options = MOONMQ_OPTIONS_DEFAULT;
    options.hosts = (const char *const *)argv + 3;
    options.host_count = (size_t)argc - 3;
    options.connect_ms_max = 30000;
    options.reconnect_ms_max = 30000;
    options.producer_name = "copy-example";
    struct moonmq_client *client;
    struct moonmq_error error;
    int code = moonmq_client_new(&options, &client, &error);
    if (code == MOONMQ_OK) {
        code = run(client, argv, &error);
        moonmq_client_free(client);
    }
    if (code != MOONMQ_OK) fprintf(stderr, "copy: %s\n", error.text);
    return code == MOONMQ_OK ? 0 : 1;
}
