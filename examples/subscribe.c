/* subscribe.c: prints the records of a topic that a group has not worked through yet.
 *
 *     subscribe TOPIC GROUP COUNT HOST:PORT…
 *
 * Ends after COUNT records, or when none came for five seconds. What is printed twice after a crash
 * is what the broker had not heard of: that is "at least once". */
#include <moonmq.h>
#include <stdio.h>
#include <stdlib.h>

static int run(struct moonmq_client *client, char **argv, struct moonmq_error *error)
{
    long count = atol(argv[3]);
    int code = moonmq_subscribe(client, argv[1], argv[2], false, error);
    for (long i = 0; i < count && code == MOONMQ_OK; i++) {
        const struct moonmq_record *record;
        code = moonmq_next_record(client, 5000, &record, error);
        if (code != MOONMQ_OK) break;
        printf("%d %lld %.*s\n", record->partition, (long long)record->offset,
               (int)record->value_bytes, (const char *)record->value);
        /* For each record, or now and then, or not at all: the next fetch says the same. */
        if (i + 1 == count) {
            code =
                moonmq_commit(client, record->topic, record->partition, record->offset + 1, error);
        }
    }
    return code == MOONMQ_TIMEOUT ? MOONMQ_OK : code;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: subscribe TOPIC GROUP COUNT HOST:PORT...\n");
        return 2;
    }
    struct moonmq_options options = MOONMQ_OPTIONS_DEFAULT;
    options.hosts = (const char *const *)argv + 4;
    options.host_count = (size_t)argc - 4;
    options.connect_ms_max = 30000;
    options.reconnect_ms_max = 30000;
    struct moonmq_client *client;
    struct moonmq_error error;
    int code = moonmq_client_new(&options, &client, &error);
    if (code == MOONMQ_OK) {
        code = run(client, argv, &error);
        moonmq_client_free(client);
    }
    if (code != MOONMQ_OK) fprintf(stderr, "subscribe: %s\n", error.text);
    return code == MOONMQ_OK ? 0 : 1;
}
