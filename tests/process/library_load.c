/* library_load.c: a program that uses libmoonmq hard; library_test.py compiles and runs it.
 *
 *     library_load produce TOPIC COUNT STEPS KEYS HOST…
 *
 * Appends the numbers 0 .. COUNT - 1 asynchronously, each once; after each of STEPS equal parts it
 * says so and waits for a line. KEYS 0: without keys. Offsets of a partition must ascend.
 *
 *     library_load connect COUNT HOST…
 *
 * Connects COUNT times, does a little of everything, and tells its memory at a tenth and at the
 * end. */
#include <moonmq.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PARTITIONS_MAX 64

static long acknowledged;
static int64_t last_offsets[PARTITIONS_MAX];

static void die(const char *what, const char *text)
{
    fprintf(stderr, "%s: %s\n", what, text);
    exit(1);
}

static void check(int code, const char *what, const struct moonmq_error *error)
{
    if (code != MOONMQ_OK) die(what, error->text);
}

static struct moonmq_client *connect_to(struct moonmq_options *options, char **hosts, int count)
{
    struct moonmq_client *client;
    struct moonmq_error error;
    options->hosts = (const char *const *)hosts;
    options->host_count = (size_t)count;
    options->connect_ms_max = 60000;
    check(moonmq_client_new(options, &client, &error), "connect", &error);
    return client;
}

/* ---- produce ---- */

static void take_delivery(void *context, const struct moonmq_delivery *delivery)
{
    (void)context;
    if (delivery->code != MOONMQ_OK) die("delivery", delivery->text);
    int64_t *last = &last_offsets[delivery->ack.partition % PARTITIONS_MAX];
    if (delivery->ack.offset <= *last) die("delivery", "an offset that does not ascend");
    *last = delivery->ack.offset;
    acknowledged++;
}

/* Nobody reads the line before the other side has killed a broker, say: the client is polled. */
static void wait_for_line(struct moonmq_client *client, long at)
{
    struct moonmq_error error;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    char line[64];
    printf("at %ld\n", at);
    fflush(stdout);
    while (poll(&input, 1, 0) == 0)
        check(moonmq_poll(client, 20, &error), "poll", &error);
    if (read(STDIN_FILENO, line, sizeof(line)) <= 0) exit(1);
}

static int produce(int argc, char **argv)
{
    if (argc < 7) return 2;
    const char *topic = argv[2];
    long count = atol(argv[3]), steps = atol(argv[4]), keys = atol(argv[5]);
    struct moonmq_error error;
    struct moonmq_options options = MOONMQ_OPTIONS_DEFAULT;
    options.reconnect_ms_max = 60000;
    options.request_timeout_ms = 60000;
    options.idempotent = true;
    struct moonmq_client *client = connect_to(&options, argv + 6, argc - 6);
    for (int i = 0; i < PARTITIONS_MAX; i++)
        last_offsets[i] = -1;
    for (long i = 0; i < count; i++) {
        char key[32] = "", value[32];
        if (keys > 0) snprintf(key, sizeof(key), "k%ld", i % keys);
        snprintf(value, sizeof(value), "%ld", i);
        struct moonmq_message message = {key, strlen(key), value, strlen(value)};
        check(moonmq_produce_async(client, topic, &message, take_delivery, NULL, &error), "produce",
              &error);
        if ((i + 1) % (count / steps) == 0 && i + 1 < count) wait_for_line(client, i + 1);
    }
    check(moonmq_flush(client, 60000, &error), "flush", &error);
    moonmq_client_free(client);
    printf("acknowledged %ld\n", acknowledged);
    return acknowledged == count ? 0 : 1;
}

/* ---- connect ---- */

static long resident_kib(void)
{
    char line[256];
    long found = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        sscanf(line, "VmRSS: %ld", &found);
    if (file != NULL) fclose(file);
    return found;
}

/* Every tenth one also writes, reads and asks. */
static void use(struct moonmq_client *client, long number)
{
    struct moonmq_error error;
    struct moonmq_message message = {"k", 1, "v", 1};
    char **names;
    size_t count;
    if (number % 10 != 0) return;
    check(moonmq_produce_async(client, "connects", &message, NULL, NULL, &error), "produce",
          &error);
    check(moonmq_flush(client, 30000, &error), "flush", &error);
    check(moonmq_list_topics(client, &names, &count, &error), "list", &error);
    moonmq_topics_free(names, count);
    const struct moonmq_record *record;
    check(moonmq_subscribe(client, "connects", "connectors", false, &error), "subscribe", &error);
    check(moonmq_next_record(client, 10000, &record, &error), "next", &error);
    /* What is queued and not waited for is dropped. */
    if (number % 20 == 0) {
        check(moonmq_produce_async(client, "connects", &message, NULL, NULL, &error), "produce",
              &error);
    }
}

static int connect_often(int argc, char **argv)
{
    if (argc < 4) return 2;
    long count = atol(argv[2]);
    struct moonmq_options options = MOONMQ_OPTIONS_DEFAULT;
    for (long i = 0; i < count; i++) {
        options.idempotent = i % 3 == 0;
        options.client_name = i % 2 == 0 ? "library_load" : NULL;
        struct moonmq_client *client = connect_to(&options, argv + 3, argc - 3);
        use(client, i);
        moonmq_client_free(client);
        if (i == count / 10) printf("resident %ld\n", resident_kib());
    }
    printf("resident %ld\n", resident_kib());
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "produce") == 0) return produce(argc, argv);
    if (strcmp(what, "connect") == 0) return connect_often(argc, argv);
    return 2;
}
