/* library_load.c: a program that uses libmoonmq hard; library_test.py compiles and runs it.
 *
 *     library_load produce TOPIC COUNT STEPS KEYS PLACES HOST…
 *
 * Appends the numbers 0 .. COUNT - 1 asynchronously, each once; between STEPS equal parts it says
 * so and waits for a line. Every other one has one of KEYS keys. At the end the file PLACES has a
 * line for each: where it was acknowledged to be.
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

static long acknowledged;

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
    struct moonmq_ack *place = context;
    if (delivery->code != MOONMQ_OK) die("delivery", delivery->text);
    if (place->partition >= 0) die("delivery", "told twice");
    *place = delivery->ack;
    acknowledged++;
}

static void write_places(const char *path, const struct moonmq_ack *places, long count)
{
    FILE *file = fopen(path, "w");
    if (file == NULL) die("open", path);
    for (long i = 0; i < count; i++)
        fprintf(file, "%d %lld\n", places[i].partition, (long long)places[i].offset);
    if (fclose(file) != 0) die("write", path);
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

static void append(struct moonmq_client *client, const char *topic, long keys, long number,
                   struct moonmq_ack *place)
{
    struct moonmq_error error;
    char key[32] = "", value[32];
    if (number % 2 == 0) snprintf(key, sizeof(key), "k%ld", number / 2 % keys);
    snprintf(value, sizeof(value), "%ld", number);
    struct moonmq_message message = {key, strlen(key), value, strlen(value)};
    *place = (struct moonmq_ack){-1, -1};
    check(moonmq_produce_async(client, topic, &message, take_delivery, place, &error), "produce",
          &error);
}

static int produce(int argc, char **argv)
{
    if (argc < 8) return 2;
    long count = atol(argv[3]), steps = atol(argv[4]), keys = atol(argv[5]);
    struct moonmq_error error;
    struct moonmq_options options = MOONMQ_OPTIONS_DEFAULT;
    options.reconnect_ms_max = 60000;
    options.request_timeout_ms = 60000;
    options.idempotent = true;
    struct moonmq_client *client = connect_to(&options, argv + 7, argc - 7);
    struct moonmq_ack *places = calloc((size_t)count, sizeof(*places));
    if (places == NULL) die("produce", "no memory");
    for (long step = 0, i = 0; step < steps; step++) {
        if (step > 0) wait_for_line(client, i);
        for (; i < count * (step + 1) / steps; i++)
            append(client, argv[2], keys, i, &places[i]);
    }
    check(moonmq_flush(client, 60000, &error), "flush", &error);
    moonmq_client_free(client);
    write_places(argv[6], places, count);
    free(places);
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
