/* client.c: the verbs of ../README.md on librdkafka's C interface. */
#include <jansson.h>
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static json_t *arguments;
static const char *topic;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool ended;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static const char *text_of(const char *name)
{
    const char *text = json_string_value(json_object_get(arguments, name));
    if (text == NULL) die("argument missing", name);
    return text;
}

static int number_of(const char *name)
{
    return (int)json_integer_value(json_object_get(arguments, name));
}

/* Takes `more`, which may be NULL. */
static void tell(const char *event, json_t *more)
{
    json_t *line = more != NULL ? more : json_object();
    json_object_set_new(line, "event", json_string(event));
    char *text = json_dumps(line, JSON_COMPACT);
    pthread_mutex_lock(&output);
    puts(text);
    fflush(stdout);
    pthread_mutex_unlock(&output);
    free(text);
    json_decref(line);
}

static json_t *read_input(void)
{
    json_t *lines = json_array();
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, stdin) > 0) {
        json_array_append_new(lines, json_loads(line, 0, NULL));
    }
    free(line);
    return lines;
}

static void *wait_for_end(void *unused)
{
    (void)unused;
    char bytes[256];
    while (read(STDIN_FILENO, bytes, sizeof bytes) > 0) {
    }
    ended = true;
    return NULL;
}

static void watch_input(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for_end, NULL) != 0) die("thread", "not started");
    pthread_detach(thread);
}

/* ---- handles ---- */

static rd_kafka_conf_t *settings(void)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (rd_kafka_conf_set(conf, "bootstrap.servers", text_of("bootstrap"), NULL, 0) !=
        RD_KAFKA_CONF_OK) {
        die("bootstrap", "refused");
    }
    return conf;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK) die(name, why);
}

static rd_kafka_t *open_handle(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
    char why[256];
    rd_kafka_t *handle = rd_kafka_new(type, conf, why, sizeof why);
    if (handle == NULL) die("rd_kafka_new", why);
    if (type == RD_KAFKA_CONSUMER) rd_kafka_poll_set_consumer(handle);
    return handle;
}

static rd_kafka_conf_t *consumer_settings(const char *group)
{
    rd_kafka_conf_t *conf = settings();
    set(conf, "group.id", group);
    set(conf, "enable.auto.commit", "false");
    set(conf, "auto.offset.reset", "earliest");
    return conf;
}

static void check(const char *what, rd_kafka_resp_err_t err)
{
    if (err != RD_KAFKA_RESP_ERR_NO_ERROR) die(what, rd_kafka_err2name(err));
}

static void check_error(const char *what, rd_kafka_error_t *error)
{
    if (error != NULL) die(what, rd_kafka_error_string(error));
}

/* ---- topics ---- */

/* One answer of the admin client; the caller destroys it. */
static rd_kafka_event_t *answer_of(rd_kafka_queue_t *queue)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 30000);
    if (event == NULL) die("admin", "no answer");
    if (rd_kafka_event_error(event)) die("admin", rd_kafka_event_error_string(event));
    return event;
}

static rd_kafka_resp_err_t error_of_first(const rd_kafka_topic_result_t **results)
{
    return rd_kafka_topic_result_error(results[0]);
}

static rd_kafka_resp_err_t create(rd_kafka_t *admin, rd_kafka_queue_t *queue)
{
    size_t count;
    rd_kafka_NewTopic_t *wanted =
        rd_kafka_NewTopic_new(topic, number_of("partitions"), -1, NULL, 0);
    rd_kafka_NewTopic_set_config(wanted, "retention.ms", "7200000");
    rd_kafka_CreateTopics(admin, &wanted, 1, NULL, queue);
    rd_kafka_event_t *event = answer_of(queue);
    rd_kafka_resp_err_t err = error_of_first(
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count));
    rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy(wanted);
    return err;
}

static int partitions_now(rd_kafka_t *admin)
{
    const struct rd_kafka_metadata *metadata;
    check("metadata", rd_kafka_metadata(admin, 1, NULL, &metadata, 30000));
    int count = -1;
    for (int i = 0; i < metadata->topic_cnt; i++) {
        if (strcmp(metadata->topics[i].topic, topic) == 0)
            count = metadata->topics[i].partition_cnt;
    }
    rd_kafka_metadata_destroy(metadata);
    return count;
}

static void tell_listed(rd_kafka_t *admin)
{
    tell("listed", json_pack("{sb}", "found", partitions_now(admin) >= 0));
}

static void tell_described(rd_kafka_t *admin, rd_kafka_queue_t *queue)
{
    size_t count, entries;
    rd_kafka_ConfigResource_t *resource =
        rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
    rd_kafka_DescribeConfigs(admin, &resource, 1, NULL, queue);
    rd_kafka_event_t *event = answer_of(queue);
    const rd_kafka_ConfigResource_t **found = rd_kafka_DescribeConfigs_result_resources(
        rd_kafka_event_DescribeConfigs_result(event), &count);
    check("configs", rd_kafka_ConfigResource_error(found[0]));
    const rd_kafka_ConfigEntry_t **configs = rd_kafka_ConfigResource_configs(found[0], &entries);
    const char *retention = "?";
    for (size_t i = 0; i < entries; i++) {
        if (strcmp(rd_kafka_ConfigEntry_name(configs[i]), "retention.ms") == 0) {
            retention = rd_kafka_ConfigEntry_value(configs[i]);
        }
    }
    tell("described",
         json_pack("{siss}", "partitions", partitions_now(admin), "retention", retention));
    rd_kafka_event_destroy(event);
    rd_kafka_ConfigResource_destroy(resource);
}

static void topics(void)
{
    size_t count;
    rd_kafka_t *admin = open_handle(RD_KAFKA_PRODUCER, settings());
    rd_kafka_queue_t *queue = rd_kafka_queue_new(admin);
    check("create", create(admin, queue));
    tell("created", NULL);
    tell("refused", json_pack("{ss}", "error", rd_kafka_err2name(create(admin, queue))));
    tell_listed(admin);
    tell_described(admin, queue);

    rd_kafka_NewPartitions_t *more =
        rd_kafka_NewPartitions_new(topic, (size_t)number_of("partitions") + 2, NULL, 0);
    rd_kafka_CreatePartitions(admin, &more, 1, NULL, queue);
    rd_kafka_event_t *event = answer_of(queue);
    check("grow", error_of_first(rd_kafka_CreatePartitions_result_topics(
                      rd_kafka_event_CreatePartitions_result(event), &count)));
    rd_kafka_event_destroy(event);
    rd_kafka_NewPartitions_destroy(more);
    tell_described(admin, queue);

    rd_kafka_DeleteTopic_t *old = rd_kafka_DeleteTopic_new(topic);
    rd_kafka_DeleteTopics(admin, &old, 1, NULL, queue);
    event = answer_of(queue);
    check("delete", error_of_first(rd_kafka_DeleteTopics_result_topics(
                        rd_kafka_event_DeleteTopics_result(event), &count)));
    rd_kafka_event_destroy(event);
    rd_kafka_DeleteTopic_destroy(old);
    tell_listed(admin);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(admin);
}

/* ---- records ---- */

static void delivered(rd_kafka_t *handle, const rd_kafka_message_t *message, void *unused)
{
    (void)handle, (void)unused;
    check("delivery", message->err);
}

static void produce_record(rd_kafka_t *producer, json_t *record)
{
    const char *key = json_string_value(json_object_get(record, "key"));
    const char *value = json_string_value(json_object_get(record, "value"));
    json_t *wanted = json_object_get(record, "headers"), *pair;
    size_t i, key_bytes = key == NULL ? 0 : strlen(key),
              value_bytes = value == NULL ? 0 : strlen(value);
    rd_kafka_headers_t *headers = rd_kafka_headers_new(json_array_size(wanted));
    json_array_foreach(wanted, i, pair)
    {
        const char *text = json_string_value(json_array_get(pair, 1));
        rd_kafka_header_add(headers, json_string_value(json_array_get(pair, 0)), -1, text,
                            (ssize_t)strlen(text));
    }
    check(
        "produce",
        rd_kafka_producev(
            producer, RD_KAFKA_V_TOPIC(topic),
            RD_KAFKA_V_PARTITION((int32_t)json_integer_value(json_object_get(record, "partition"))),
            RD_KAFKA_V_KEY(key, key_bytes), RD_KAFKA_V_VALUE((void *)(uintptr_t)value, value_bytes),
            RD_KAFKA_V_TIMESTAMP(json_integer_value(json_object_get(record, "timestamp"))),
            RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END));
}

static void produce(void)
{
    json_t *records = read_input(), *codecs = json_object_get(arguments, "codecs"), *codec, *record;
    size_t i, j;
    json_array_foreach(codecs, i, codec)
    {
        int count = 0;
        rd_kafka_conf_t *conf = settings();
        set(conf, "compression.type", json_string_value(codec));
        set(conf, "linger.ms", "20");
        rd_kafka_conf_set_dr_msg_cb(conf, delivered);
        rd_kafka_t *producer = open_handle(RD_KAFKA_PRODUCER, conf);
        json_array_foreach(records, j, record)
        {
            if (json_equal(json_object_get(record, "codec"), codec)) {
                produce_record(producer, record);
                count++;
            }
        }
        check("flush", rd_kafka_flush(producer, 30000));
        rd_kafka_destroy(producer);
        tell("produced", json_pack("{sOsi}", "codec", codec, "count", count));
    }
    json_decref(records);
}

static json_t *text_or_null(const void *data, size_t bytes)
{
    return data == NULL ? json_null() : json_stringn(data, bytes);
}

static void tell_message(rd_kafka_message_t *message)
{
    rd_kafka_headers_t *headers;
    json_t *pairs = json_array();
    if (rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        const char *name;
        const void *value;
        size_t bytes;
        for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &bytes) == 0; i++) {
            json_array_append_new(pairs, json_pack("[so]", name, text_or_null(value, bytes)));
        }
    }
    tell("record",
         json_pack("{sisIsosososI}", "partition", (int)message->partition, "offset",
                   (json_int_t)message->offset, "key", text_or_null(message->key, message->key_len),
                   "value", text_or_null(message->payload, message->len), "headers", pairs,
                   "timestamp", (json_int_t)rd_kafka_message_timestamp(message, NULL)));
}

static void find_starts(rd_kafka_t *consumer, rd_kafka_topic_partition_list_t *starts)
{
    const char *from = text_of("from");
    for (int i = 0; i < number_of("partitions"); i++) {
        int64_t low, high;
        check("watermarks",
              rd_kafka_query_watermark_offsets(consumer, topic, i, &low, &high, 30000));
        rd_kafka_topic_partition_list_add(starts, topic, i)->offset =
            strcmp(from, "earliest") == 0 ? low
            : strcmp(from, "latest") == 0 ? high
                                          : atoll(from);
    }
    if (strcmp(from, "earliest") != 0 && strcmp(from, "latest") != 0) {
        check("times", rd_kafka_offsets_for_times(consumer, starts, 30000));
    }
}

static void consume(void)
{
    watch_input();
    rd_kafka_conf_t *conf = consumer_settings("unused");
    set(conf, "isolation.level", text_of("isolation"));
    rd_kafka_t *consumer = open_handle(RD_KAFKA_CONSUMER, conf);
    rd_kafka_topic_partition_list_t *starts = rd_kafka_topic_partition_list_new(4);
    find_starts(consumer, starts);
    check("assign", rd_kafka_assign(consumer, starts));
    tell("ready", NULL);
    for (int left = number_of("count"); left > 0 && !ended;) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, 100);
        if (message == NULL) continue;
        check("poll", message->err);
        tell_message(message);
        rd_kafka_message_destroy(message);
        left--;
    }
    rd_kafka_topic_partition_list_destroy(starts);
    rd_kafka_consumer_close(consumer);
    rd_kafka_destroy(consumer);
}

/* ---- groups ---- */

static void rebalanced(rd_kafka_t *handle, rd_kafka_resp_err_t err,
                       rd_kafka_topic_partition_list_t *partitions, void *unused)
{
    (void)unused;
    bool assigns = err == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    check("assign", rd_kafka_assign(handle, assigns ? partitions : NULL));
    if (!assigns) return;
    json_t *all = json_array();
    rd_kafka_topic_partition_list_sort(partitions, NULL, NULL);
    for (int i = 0; i < partitions->cnt; i++) {
        json_array_append_new(all, json_integer(partitions->elems[i].partition));
    }
    tell("assigned", json_pack("{so}", "partitions", all));
}

static void group(void)
{
    watch_input();
    rd_kafka_conf_t *conf = consumer_settings(text_of("group"));
    set(conf, "heartbeat.interval.ms", "300");
    rd_kafka_conf_set_rebalance_cb(conf, rebalanced);
    rd_kafka_t *member = open_handle(RD_KAFKA_CONSUMER, conf);
    rd_kafka_topic_partition_list_t *wanted = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(wanted, topic, RD_KAFKA_PARTITION_UA);
    check("subscribe", rd_kafka_subscribe(member, wanted));
    rd_kafka_topic_partition_list_destroy(wanted);
    while (!ended) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(member, 100);
        if (message == NULL) continue;
        check("poll", message->err);
        tell_message(message);
        check("commit", rd_kafka_commit_message(member, message, 0));
        tell("committed", NULL);
        rd_kafka_message_destroy(message);
    }
    rd_kafka_consumer_close(member);
    rd_kafka_destroy(member);
}

/* ---- transactions ---- */

static void send_offset(rd_kafka_t *producer)
{
    rd_kafka_t *member = open_handle(RD_KAFKA_CONSUMER, consumer_settings(text_of("group")));
    rd_kafka_consumer_group_metadata_t *metadata = rd_kafka_consumer_group_metadata(member);
    rd_kafka_topic_partition_list_t *offsets = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(offsets, topic, 0)->offset = number_of("offset");
    check_error("offsets",
                rd_kafka_send_offsets_to_transaction(producer, offsets, metadata, 30000));
    rd_kafka_topic_partition_list_destroy(offsets);
    rd_kafka_consumer_group_metadata_destroy(metadata);
    rd_kafka_destroy(member);
}

static void transaction(void)
{
    json_t *records = read_input(), *record;
    size_t i;
    rd_kafka_conf_t *conf = settings();
    set(conf, "transactional.id", text_of("id"));
    rd_kafka_t *producer = open_handle(RD_KAFKA_PRODUCER, conf);
    check_error("init", rd_kafka_init_transactions(producer, 30000));
    for (int n = 0; n < number_of("transactions"); n++) {
        check_error("begin", rd_kafka_begin_transaction(producer));
        json_array_foreach(records, i, record)
        {
            if (json_integer_value(json_object_get(record, "transaction")) == n)
                produce_record(producer, record);
        }
        if (n == number_of("transactions") - 1) send_offset(producer);
        if (n % 2 == 1) {
            check("flush", rd_kafka_flush(producer, 30000));
            check_error("abort", rd_kafka_abort_transaction(producer, 30000));
        } else {
            check_error("commit", rd_kafka_commit_transaction(producer, 30000));
        }
        tell(n % 2 == 1 ? "aborted" : "committed", NULL);
    }
    rd_kafka_destroy(producer);
    json_decref(records);
}

/* ---- a leader dies ---- */

static void told(rd_kafka_t *handle, const rd_kafka_message_t *message, void *unused)
{
    (void)handle, (void)unused;
    int number = (int)(intptr_t)message->_private;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        tell("acknowledged", json_pack("{si}", "n", number));
    } else {
        tell("failed", json_pack("{siss}", "n", number, "error", rd_kafka_err2name(message->err)));
    }
}

static void failover(void)
{
    watch_input();
    rd_kafka_conf_t *conf = settings();
    rd_kafka_conf_set_dr_msg_cb(conf, told);
    rd_kafka_t *producer = open_handle(RD_KAFKA_PRODUCER, conf);
    for (int n = 0; !ended; n++) {
        char text[16];
        int length = snprintf(text, sizeof text, "%d", n);
        check("produce", rd_kafka_producev(producer, RD_KAFKA_V_TOPIC(topic),
                                           RD_KAFKA_V_PARTITION(n % number_of("partitions")),
                                           RD_KAFKA_V_VALUE(text, (size_t)length),
                                           RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                           RD_KAFKA_V_OPAQUE((void *)(intptr_t)n), RD_KAFKA_V_END));
        rd_kafka_poll(producer, number_of("pause_ms"));
    }
    check("flush", rd_kafka_flush(producer, 60000));
    rd_kafka_destroy(producer);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } verbs[] = {{"topics", topics}, {"produce", produce},         {"consume", consume},
                 {"group", group},   {"transaction", transaction}, {"failover", failover}};
    arguments = argc == 3 ? json_loads(argv[2], 0, NULL) : NULL;
    if (arguments == NULL) die("usage", "client VERB ARGUMENTS");
    topic = text_of("topic");
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].name, argv[1]) == 0) {
            verbs[i].run();
            tell("done", NULL);
            return 0;
        }
    }
    die("no such verb", argv[1]);
}
