/* produce.c: appends numbers to a topic, asynchronously, each once.
 *
 *     produce TOPIC COUNT HOST:PORT…
 *
 * Kill the leader meanwhile: the client finds the next one and goes on. */
#include <moonmq.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tally {
    long acknowledged, failed;
};

static void take_delivery(void *context, const struct moonmq_delivery *delivery)
{
    struct tally *tally = context;
    if (delivery->code == MOONMQ_OK) {
        tally->acknowledged++;
    } else if (tally->failed++ == 0) {
        fprintf(stderr, "a record failed: %s\n", delivery->text);
    }
}

static int run(struct moonmq_client *client, const char *topic, long count,
               struct moonmq_error *error)
{
    struct tally tally = {0};
    int code = moonmq_create_topic(client, topic, 3, error);
    /* A topic that is there already is as good. */
    if (code != MOONMQ_OK && strstr(error->text, "exists") == NULL) return code;
    for (long i = 0; i < count; i++) {
        char key[32], value[32];
        snprintf(key, sizeof(key), "key-%ld", i % 100);
        snprintf(value, sizeof(value), "%ld", i);
        struct moonmq_message message = {key, strlen(key), value, strlen(value)};
        code = moonmq_produce_async(client, topic, &message, take_delivery, &tally, error);
        if (code != MOONMQ_OK) return code;
    }
    code = moonmq_flush(client, 60000, error);
    printf("%ld acknowledged, %ld failed\n", tally.acknowledged, tally.failed);
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: produce TOPIC COUNT HOST:PORT...\n");
        return 2;
    }
    struct moonmq_options options = MOONMQ_OPTIONS_DEFAULT;
    options.hosts = (const char *const *)argv + 3;
    options.host_count = (size_t)argc - 3;
    options.client_name = "produce-example";
    options.connect_ms_max = 30000;
    options.reconnect_ms_max = 30000;
    options.idempotent = true;
    options.linger_ms = 5;
    struct moonmq_client *client;
    struct moonmq_error error;
    int code = moonmq_client_new(&options, &client, &error);
    if (code == MOONMQ_OK) {
        code = run(client, argv[1], atol(argv[2]), &error);
        moonmq_client_free(client);
    }
    if (code != MOONMQ_OK) fprintf(stderr, "produce: %s\n", error.text);
    return code == MOONMQ_OK ? 0 : 1;
}
