/* config_test.c: what a configuration may say, and what a bad one is told. Keys and defaults:
 * native-protocol.md section 6, replication.md section 3, decisions 1–6. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/config.h"

#define PEERS                                                                      \
    "\"Peers\":[{\"Id\":2,\"Address\":\"h2:9095\",\"ClientAddress\":\"h2:9092\"}," \
    "{\"Id\":3,\"Address\":\"h3:9095\",\"ClientAddress\":\"h3:9092\"}]"
#define GROUP                                                                                \
    "\"Enabled\":true,\"ReplicaId\":1,\"ReplicateHost\":\"0.0.0.0\",\"ReplicatePort\":9095," \
    "\"ClientAddress\":\"h1:9092\""

static struct server_config config;

static enum status load(const char *text, struct error *error)
{
    json_error_t where;
    json_t *root = json_loads(text, 0, &where);
    assert_non_null(root);
    enum status status = config_from_json(root, &config, error);
    json_decref(root);
    return status;
}

static void empty_document_is_a_group_of_one_with_defaults(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(load("{}", &error), STATUS_OK);
    assert_int_equal(config.port, 9092);
    assert_int_equal(config.metrics_port, 9090);
    assert_string_equal(config.host, "0.0.0.0");
    assert_false(config.replication.enabled);
    assert_int_equal(config.replication.min_insync, 1);
    assert_int_equal(config.max_frame_size, 1 << 20);
    assert_int_equal(config.handshake_deadline_us, 5000000);
    assert_int_equal(config.warning_count, 0);
}

static void without_failover_the_role_says_who_pushes(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(load("{\"Server\":{\"Replication\":{\"Enabled\":true,\"LagMax\":100,"
                          "\"AckTimeout\":0.5,\"Peers\":[{\"Id\":2,\"Address\":\"h2:9095\"},"
                          "{\"Id\":3,\"Address\":\"h3:9095\"}]}}}",
                          &error),
                     STATUS_OK);
    assert_false(config.replication.enabled);
    assert_true(config.replication.pushes && !config.replication.takes_pushes);
    assert_int_equal(config.replication.follower_count, 2);
    assert_int_equal(config.replication.peer_count, 0);
    assert_int_equal(config.replication.lag_max, 100);
    assert_int_equal(config.replication.ack_timeout_us, 500000);
    assert_false(replication_has_port(&config.replication));
    assert_int_equal(load("{\"Server\":{\"Replication\":{" GROUP "," PEERS
                          ",\"Role\":\"follower\",\"Failover\":false}}}",
                          &error),
                     STATUS_OK);
    assert_true(!config.replication.pushes && config.replication.takes_pushes);
    assert_int_equal(config.replication.follower_count, 0);
    assert_true(replication_has_port(&config.replication));
    assert_int_equal(load("{\"Server\":{\"Replication\":{" GROUP "," PEERS
                          ",\"Role\":\"both\",\"Failover\":{\"Enabled\":false}}}}",
                          &error),
                     STATUS_OK);
    assert_true(config.replication.pushes && config.replication.takes_pushes);
    assert_int_equal(config.warning_count, 0);
}

static void a_migration_policy_is_one_of_kafkas(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(
        load("{\"Server\":{\"Kafka\":{\"group.consumer.migration.policy\":\"upgrade\"}}}", &error),
        STATUS_OK);
    assert_int_equal(
        load("{\"Server\":{\"Kafka\":{\"group.consumer.migration.policy\":\"never\"}}}", &error),
        STATUS_INVALID_CONFIG);
    assert_non_null(strstr(error.text, "bidirectional"));
}

static void memory_for_requests_holds_the_largest(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(load("{}", &error), STATUS_OK);
    assert_int_equal(config.request_bytes, 256 << 20);
    assert_int_equal(load("{\"Server\":{\"Kafka\":{\"MaxRequestSize\":1073741824}}}", &error),
                     STATUS_OK);
    assert_true(config.request_bytes == 2 * ((INT64_C(1) << 30) + 4));
    assert_int_equal(load("{\"Server\":{\"Memory\":{\"RequestBytes\":104857600}}}", &error),
                     STATUS_INVALID_CONFIG);
    assert_non_null(strstr(error.text, "Server.Memory.RequestBytes"));
}

static void failover_true_means_the_block_with_defaults(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(
        load("{\"Server\":{\"Replication\":{" GROUP "," PEERS ",\"Failover\":true}}}", &error),
        STATUS_OK);
    const struct replication_config *replication = &config.replication;
    assert_true(replication->enabled);
    assert_int_equal(replication->peer_count, 2);
    assert_int_equal(replication->min_insync, 2);
    assert_int_equal(replication->election_timeout_us, 1000000);
    assert_int_equal(replication->election_timeout_max_us, 2000000);
    assert_int_equal(replication->heartbeat_us, 100000);
    assert_int_equal(replication->follower_gone_us, 500000);
    assert_int_equal(replication->isr_lag_us, 10000000);
    assert_int_equal(replication->ack_timeout_us, 5000000);
    assert_string_equal(replication->client_host, "h1");
    assert_string_equal(replication->peers[1].client_host, "h3");
    assert_int_equal(replication->peers[1].client_port, 9092);
}

static void upper_election_bound_is_twice_the_lower_unless_given(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(load("{\"Server\":{\"Replication\":{" GROUP "," PEERS
                          ",\"Failover\":{\"ElectionTimeoutMs\":300}}}}",
                          &error),
                     STATUS_OK);
    assert_int_equal(config.replication.election_timeout_us, 300000);
    assert_int_equal(config.replication.election_timeout_max_us, 600000);
}

static void comments_and_fractions_of_seconds_are_accepted(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(load("{\"_note\":1,\"Server\":{\"_x\":{},\"IdleDeadline\":1.5}}", &error),
                     STATUS_OK);
    assert_int_equal(config.idle_deadline_us, 1500000);
}

static void keys_without_effect_are_warned_about(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(
        load("{\"Gateway\":{\"Port\":1},\"Server\":{\"StorageBackend\":\"segmented\"}}", &error),
        STATUS_OK);
    assert_int_equal(config.warning_count, 2);
}

static void token_may_be_one_or_two_texts(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(load("{\"Server\":{\"Replication\":{" GROUP "," PEERS
                          ",\"Failover\":true,\"Token\":[\"a\",\"b\"]}}}",
                          &error),
                     STATUS_OK);
    assert_string_equal(config.tokens[1], "b");
    assert_true(config.replication.has_token);
}

/* Each bad document, the key its error must name, and a word of the mend. */
static const struct {
    const char *document, *key, *mend;
} bad[] = {
    {"{\"Sever\":{}}", "Sever", "Server"},
    {"{\"Server\":{\"Prot\":1}}", "Server.Prot", "Server.Port"},
    {"{\"Server\":{\"Port\":\"9092\"}}", "Server.Port", "integer"},
    {"{\"Server\":{\"Port\":70000}}", "Server.Port", "65535"},
    {"{\"Server\":{\"Port\":-1}}", "Server.Port", "0..65535"},
    {"{\"Server\":{\"Host\":5}}", "Server.Host", "text"},
    {"{\"Server\":[]}", "Server", "object"},
    {"{\"Server\":{\"IdleDeadline\":-3}}", "Server.IdleDeadline", "seconds"},
    {"{\"Server\":{\"Acks\":\"most\"}}", "Server.Acks", "none, leader, all"},
    {"{\"Server\":{\"DataDir\":\"\"}}", "Server.DataDir", "directory"},
    {"{\"Server\":{\"Tls\":true}}", "Server.Tls", "not supported"},
    {"{\"Server\":{\"Cluster\":{}}}", "Server.Cluster", "not supported"},
    {"{\"Server\":{\"Autobalance\":{}}}", "Server.Autobalance", "not supported"},
    {"{\"Logging\":{\"Level\":\"LOUD\"}}", "Logging.Level", "DEBUG"},
    {"{\"Auth\":{\"Username\":\"a\"}}", "Auth", "PasswordHash"},
    {"{\"Auth\":{\"Password\":\"a\"}}", "Auth.Username", "missing"},
    {"{\"Auth\":{\"Username\":\"a\",\"PasswordHash\":\"x\"}}", "Auth.PasswordHash", "moonmq hash"},
    {"{\"Server\":{\"MetricsPort\":9092,\"Port\":9092}}", "Server.MetricsPort", "Server.Port"},
    {"{\"Server\":{\"Port\":1,\"Replication\":{" GROUP "," PEERS ",\"Failover\":true,"
     "\"ReplicatePort\":1}}}",
     "ReplicatePort", "Server.Port"},
    {"{\"Server\":{\"Replication\":{" GROUP ",\"Failover\":true,\"Peers\":[{\"Id\":2,\"Address\":"
     "\"h:1\",\"ClientAddress\":\"h:4\"},{\"Id\":3,\"Address\":\"h:1\",\"ClientAddress\":\"h:5\"}]"
     "}}}",
     "Peers[1].Address", "twice"},
    {"{\"Server\":{\"Replication\":{" GROUP ",\"Failover\":true,\"Peers\":[{\"Id\":2,\"Address\":"
     "\"h:1\",\"ClientAddress\":\"h:4\"},{\"Id\":3,\"Address\":\"h:2\",\"ClientAddress\":\"h:4\"}]"
     "}}}",
     "Peers[1].ClientAddress", "twice"},
    {"{\"Server\":{\"Replication\":{" GROUP "}}}", "Peers", "followers"},
    {"{\"Server\":{\"Replication\":{\"Enabled\":true,\"Role\":\"follower\"}}}", "ReplicatePort",
     "leader pushes"},
    {"{\"Server\":{\"Replication\":{" GROUP "," PEERS ",\"LagMax\":-1}}}", "LagMax", "within"},
    {"{\"Server\":{\"Port\":1,\"Replication\":{\"Enabled\":true,\"Role\":\"follower\","
     "\"ReplicatePort\":1}}}",
     "ReplicatePort", "Server.Port"},
    {"{\"Server\":{\"Replication\":{" GROUP ",\"Failover\":true}}}", "Peers", "missing"},
    {"{\"Server\":{\"Replication\":{\"Enabled\":true,\"ReplicatePort\":1," PEERS
     ",\"Failover\":true,\"ClientAddress\":\"0.0.0.0:9092\"}}}",
     "Server.Replication.ClientAddress", "nobody can connect"},
    {"{\"Server\":{\"Replication\":{" GROUP ",\"Failover\":true,\"Peers\":[{\"Id\":2,"
     "\"Address\":\"h2:1\",\"ClientAddress\":\"[::]:1\"}]}}}",
     "Peers[0].ClientAddress", "nobody can connect"},
    {"{\"Server\":{\"Replication\":{\"Enabled\":true,\"ReplicatePort\":1," PEERS
     ",\"Failover\":true}}}",
     "ClientAddress", "host:port"},
    {"{\"Server\":{\"Replication\":{\"Enabled\":true,\"ClientAddress\":\"h:1\"," PEERS
     ",\"Failover\":true}}}",
     "ReplicatePort", "missing"},
    {"{\"Server\":{\"Replication\":{" GROUP ",\"Failover\":true,\"Peers\":[{\"Id\":2,"
     "\"Address\":\"h2\",\"ClientAddress\":\"h2:1\"}]}}}",
     "Peers[0].Address", "host:port"},
    {"{\"Server\":{\"Replication\":{" GROUP ",\"Failover\":true,\"Peers\":[{\"Id\":1,"
     "\"Address\":\"h2:1\",\"ClientAddress\":\"h2:1\"}]}}}",
     "Peers[0].Id", "own ReplicaId"},
    {"{\"Server\":{\"Replication\":{" GROUP ",\"Failover\":true,\"Peers\":[{\"Id\":2,\"Address\":"
     "\"h:1\",\"ClientAddress\":\"h:1\"},{\"Id\":2,\"Address\":\"h:2\",\"ClientAddress\":\"h:2\"}]"
     "}}}",
     "Peers[1].Id", "twice"},
    {"{\"Server\":{\"Replication\":{" GROUP ",\"Failover\":true,\"Peers\":[{\"Id\":2,\"Adress\":"
     "\"h:1\"}]}}}",
     "Peers[0].Adress", "Address"},
    {"{\"Server\":{\"Replication\":{" GROUP "," PEERS ",\"Failover\":true,\"Token\":\"a b\"}}}",
     "Token", "ASCII"},
    {"{\"Server\":{\"Replication\":{" GROUP "," PEERS ",\"Failover\":true,\"Role\":\"king\"}}}",
     "Role", "follower"},
    {"{\"Server\":{\"Replication\":{" GROUP "," PEERS ",\"Failover\":{\"MinInsyncReplicas\":4}}}}",
     "MinInsyncReplicas", "3"},
    {"{\"Server\":{\"Replication\":{" GROUP "," PEERS ",\"Failover\":{\"HeartbeatMs\":900}}}}",
     "HeartbeatMs", "ElectionTimeoutMs"},
    {"{\"Server\":{\"Replication\":{" GROUP "," PEERS
     ",\"Failover\":{\"ElectionTimeoutMaxMs\":500}}}}",
     "ElectionTimeoutMaxMs", "ElectionTimeoutMs"},
};

static void bad_documents_name_the_key_and_the_mend(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct error error = {0};
        enum status status = load(bad[i].document, &error);
        if (status != STATUS_INVALID_CONFIG || strstr(error.text, bad[i].key) == NULL ||
            strstr(error.text, bad[i].mend) == NULL || strchr(error.text, '\n') != NULL) {
            fail_msg("%s\n  gave status %d: %s", bad[i].document, (int)status, error.text);
        }
    }
}

static void risky_groups_are_warned_about(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(load("{\"Server\":{\"Replication\":{" GROUP
                          ",\"Failover\":{\"MinInsyncReplicas\":1},\"Peers\":[{\"Id\":2,"
                          "\"Address\":\"h2:1\",\"ClientAddress\":\"h2:1\"}]}}}",
                          &error),
                     STATUS_OK);
    assert_int_equal(config.warning_count, 2); /* even, and below a majority */
}

static void assert_mode(const char *document, const char *mode, uint32_t warnings)
{
    char text[128];
    struct error error = {0};
    if (load(document, &error) != STATUS_OK) fail_msg("%s: %s", document, error.text);
    config_describe_mode(&config, text, sizeof(text));
    assert_string_equal(text, mode);
    assert_int_equal(config.warning_count, warnings);
}

static void the_mode_is_named_and_a_forgotten_enabled_warned_about(void **state)
{
    (void)state;
    assert_mode("{}", "one broker by itself", 0);
    assert_mode("{\"Server\":{\"Replication\":{" GROUP "," PEERS ",\"Failover\":true}}}",
                "replica 1 of a failover group of 3", 0);
    assert_mode("{\"Server\":{\"Replication\":{" GROUP "," PEERS "}}}",
                "static mode: pushes to 2 followers (no Failover)", 0);
    assert_mode("{\"Server\":{\"Replication\":{" GROUP "," PEERS ",\"Role\":\"follower\"}}}",
                "static mode: takes what is pushed (no Failover)", 0);
    assert_mode("{\"Server\":{\"Replication\":{" PEERS "}}}", "one broker by itself", 1);
    assert_non_null(strstr(config.warnings[0], "Server.Replication.Enabled to true"));
    assert_mode("{\"Server\":{\"Replication\":{\"Failover\":true}}}", "one broker by itself", 1);
    assert_mode("{\"Server\":{\"Replication\":{\"Enabled\":false," PEERS ",\"Failover\":true}}}",
                "one broker by itself", 0);
}

static void a_user_is_warned_to_shut_out_kafka_clients(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(load("{\"Auth\":{\"Username\":\"a\",\"Password\":\"b\"}}", &error), STATUS_OK);
    assert_int_equal(config.warning_count, 2); /* and that the password is plain */
    assert_non_null(strstr(config.warnings[0], "every Kafka client is refused"));
}

static void the_mend_of_a_bad_hash_is_named_once(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(load("{\"Auth\":{\"Username\":\"a\",\"PasswordHash\":\"x\"}}", &error),
                     STATUS_INVALID_CONFIG);
    const char *mend = strstr(error.text, "moonmq hash");
    assert_non_null(mend);
    assert_null(strstr(mend + 1, "moonmq hash"));
}

static enum status load_files(const char *path, const char *environment,
                              const char *const *variables, struct error *error)
{
    const struct config_input input = {
        .path = path, .environment = environment, .variables = variables};
    return config_load(&input, &config, NULL, error);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void overlay_beside_the_file_merges_objects_and_replaces_the_rest(void **state)
{
    (void)state;
    char dir[] = "/tmp/moonmq-config-XXXXXX", base[128], over[128];
    struct error error;
    assert_non_null(mkdtemp(dir));
    snprintf(base, sizeof(base), "%s/appsettings.json", dir);
    snprintf(over, sizeof(over), "%s/appsettings.Night.json", dir);
    write_text(base, "{\"Server\":{\"Port\":1111,\"Host\":\"127.0.0.1\"}}");
    write_text(over, "{\"Server\":{\"Port\":2222}}");
    assert_int_equal(load_files(base, "Night", NULL, &error), STATUS_OK);
    assert_int_equal(config.port, 2222);
    assert_string_equal(config.host, "127.0.0.1");
    assert_int_equal(load_files(base, "Day", NULL, &error), STATUS_OK);
    assert_int_equal(config.port, 1111);
    write_text(over, "{\"Server\":{\"Port\":}}");
    assert_int_equal(load_files(base, "Night", NULL, &error), STATUS_INVALID_CONFIG);
    assert_non_null(strstr(error.text, "line 1"));
    write_text(over, "{\"Server\":{\"Port\":true}}");
    assert_int_equal(load_files(base, "Night", NULL, &error), STATUS_INVALID_CONFIG);
    assert_non_null(strstr(error.text, over));
    remove(base);
    assert_int_equal(load_files(base, "Day", NULL, &error), STATUS_INVALID_CONFIG);
    assert_non_null(strstr(error.text, "No such file"));
    remove(over);
    remove(dir);
}

/* ---- variables ---- */

/* A configuration file with what the test wants in it. */
static enum status load_with(const char *text, const char *const *variables, struct error *error)
{
    char dir[] = "/tmp/moonmq-config-XXXXXX", path[128];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/a.json", dir);
    write_text(path, text);
    enum status status = load_files(path, "None", variables, error);
    remove(path);
    remove(dir);
    return status;
}

#define VARIABLES(...) ((const char *const[]){__VA_ARGS__, NULL})
#define REPLICA        "{\"Server\":{\"Replication\":{" GROUP "," PEERS ",\"Failover\":true}}}"

static void assert_loads(const char *text, const char *const *variables)
{
    struct error error = {0};
    if (load_with(text, variables, &error) != STATUS_OK) fail_msg("%s", error.text);
}

static void variables_lie_over_the_files(void **state)
{
    (void)state;
    assert_loads("{\"Server\":{\"Port\":1,\"Host\":\"h\"}}",
                 VARIABLES("MOONMQ_SERVER__PORT=2", "moonmq_logging__logToStderr=FALSE",
                           "MOONMQ_SERVER__SENDDEADLINE=1.5", "MOONMQ_SERVER__DLQ__SUFFIX=.x",
                           "MOONMQ_SERVER__KAFKA__NUM_PARTITIONS=3", "PATH=/bin", "NOTHING",
                           "MOONMQ_SERVER__KAFKA__broker.rack=r1", "MOONMQ_LOGGING__FILE=/f"));
    assert_int_equal(config.port, 2);
    assert_string_equal(config.host, "h");
    assert_false(config.log_to_stderr);
    assert_int_equal(config.send_deadline_us, 1500000);
    assert_string_equal(config.dead_letter_suffix, ".x");
    assert_int_equal(config.kafka_num_partitions, 3);
    assert_string_equal(config.kafka_rack, "r1");
    assert_int_equal(config.variable_count, 7);
    assert_int_equal(config.warning_count, 0);
}

static void a_whole_replica_can_be_made_of_variables(void **state)
{
    (void)state;
    assert_loads("{}", VARIABLES("MOONMQ_SERVER__REPLICATION__PEERS__1__ID=3",
                                 "MOONMQ_SERVER__REPLICATION__PEERS__1__ADDRESS=h3:1",
                                 "MOONMQ_SERVER__REPLICATION__PEERS__1__CLIENTADDRESS=h3:2",
                                 "MOONMQ_SERVER__REPLICATION__PEERS__0__CLIENTADDRESS=h2:2",
                                 "MOONMQ_SERVER__REPLICATION__PEERS__0__ADDRESS=h2:1",
                                 "MOONMQ_SERVER__REPLICATION__PEERS__0__ID=2",
                                 "MOONMQ_SERVER__REPLICATION__FAILOVER__HEARTBEATMS=50",
                                 "MOONMQ_SERVER__REPLICATION__FAILOVER=true",
                                 "MOONMQ_SERVER__REPLICATION__ENABLED=true",
                                 "MOONMQ_SERVER__REPLICATION__REPLICATEPORT=9095",
                                 "MOONMQ_SERVER__REPLICATION__CLIENTADDRESS=h1:2"));
    assert_true(config.replication.enabled);
    assert_int_equal(config.replication.peer_count, 2);
    assert_int_equal(config.replication.peers[1].id, 3);
    assert_string_equal(config.replication.peers[0].address, "h2:1");
    assert_int_equal(config.replication.heartbeat_us, 50000);
    assert_string_equal(config.acks, "all");
}

static void a_variable_changes_one_element_or_one_key_of_a_block(void **state)
{
    (void)state;
    assert_loads(REPLICA, VARIABLES("MOONMQ_SERVER__REPLICATION__PEERS__1__ADDRESS=other:1",
                                    "MOONMQ_SERVER__REPLICATION__FAILOVER__MAXLOGENTRIES=99"));
    assert_true(config.replication.enabled);
    assert_string_equal(config.replication.peers[0].address, "h2:9095");
    assert_string_equal(config.replication.peers[1].address, "other:1");
    assert_int_equal(config.replication.max_log_entries, 99);
    assert_loads(REPLICA, VARIABLES("MOONMQ_SERVER__REPLICATION__FAILOVER=false"));
    assert_true(config.replication.pushes);
    assert_loads("{\"Server\":{\"Replication\":{\"Enabled\":false,\"Failover\":{\"MaxLogEntries\":"
                 "9}}}}",
                 VARIABLES("MOONMQ_SERVER__REPLICATION__FAILOVER=true"));
    assert_true(config.failover_enabled);
    assert_int_equal(config.max_log_entries, 9); /* the rest of the block stays */
}

static void one_of_two_tokens_may_come_from_a_variable(void **state)
{
    (void)state;
    static const char text[] = "{\"Server\":{\"Replication\":{\"Token\":\"old\"}}}";
    assert_loads(text, VARIABLES("MOONMQ_SERVER__REPLICATION__TOKEN__1=new"));
    assert_string_equal(config.tokens[0], "old");
    assert_string_equal(config.tokens[1], "new");
    assert_loads(text, VARIABLES("MOONMQ_SERVER__REPLICATION__TOKEN=new"));
    assert_string_equal(config.tokens[0], "new");
    assert_string_equal(config.tokens[1], "");
}

static void the_metrics_token_of_the_program_counts_last(void **state)
{
    (void)state;
    static const char text[] = "{\"Server\":{\"MetricsAuth\":{\"Token\":\"file\"}}}";
    assert_loads("{}", VARIABLES("MOONMQ_METRICS_TOKEN=own"));
    assert_string_equal(config.metrics_token, "own");
    assert_loads(text, VARIABLES("MOONMQ_METRICS_TOKEN=own"));
    assert_string_equal(config.metrics_token, "file");
    assert_loads(
        text, VARIABLES("MOONMQ_METRICS_TOKEN=own", "MOONMQ_SERVER__METRICSAUTH__TOKEN=setting"));
    assert_string_equal(config.metrics_token, "setting");
}

/* A file that holds a secret, in `path`. */
static void write_secret(char path[128], const char *text, size_t bytes)
{
    snprintf(path, 128, "/tmp/moonmq-secret-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, bytes), bytes);
    close(fd);
}

static void a_file_may_hold_a_secret_and_loses_one_newline(void **state)
{
    (void)state;
    char path[128], variable[256];
    write_secret(path, "tok\r\n", 5);
    snprintf(variable, sizeof(variable), "MOONMQ_SERVER__REPLICATION__TOKEN_FILE=%s", path);
    assert_loads("{}", VARIABLES(variable));
    assert_string_equal(config.tokens[0], "tok");
    snprintf(variable, sizeof(variable), "MOONMQ_SERVER__REPLICATION__TOKEN__0_FILE=%s", path);
    assert_loads("{}", VARIABLES(variable));
    assert_string_equal(config.tokens[0], "tok");
    snprintf(variable, sizeof(variable), "MOONMQ_METRICS_TOKEN_FILE=%s", path);
    assert_loads("{}", VARIABLES(variable));
    assert_string_equal(config.metrics_token, "tok");
    remove(path);
    write_secret(path, "two\n\n", 5);
    snprintf(variable, sizeof(variable), "MOONMQ_AUTH__PASSWORD_FILE=%s", path);
    assert_loads("{}", VARIABLES("MOONMQ_AUTH__USERNAME=u", variable));
    assert_string_equal(config.password, "two\n");
    remove(path);
}

static void assert_refused(const char *text, const char *const *variables, const char *first,
                           const char *mend)
{
    struct error error = {0};
    enum status status = load_with(text, variables, &error);
    if (status != STATUS_INVALID_CONFIG || strncmp(error.text, first, strlen(first)) != 0 ||
        error.text[strlen(first)] != ':' || strstr(error.text, mend) == NULL ||
        strchr(error.text, '\n') != NULL) {
        fail_msg("%s gave status %d: %s", variables[0], (int)status, error.text);
    }
}

static void bad_secret_files_are_told_apart_and_never_quoted(void **state)
{
    (void)state;
    static char large[5000];
    static const struct {
        const char *text;
        size_t bytes;
        const char *mend;
    } files[] = {
        {"", 0, "empty"},         {"\n", 1, "empty"},       {large, sizeof(large), "4096 bytes"},
        {"a\0b", 3, "zero byte"}, {"\xff\xfe", 2, "UTF-8"}, {"sesame open\n", 12, "ASCII"},
    };
    memset(large, 'x', sizeof(large));
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[128], variable[256];
        struct error error = {0};
        write_secret(path, files[i].text, files[i].bytes);
        snprintf(variable, sizeof(variable), "MOONMQ_SERVER__REPLICATION__TOKEN_FILE=%s", path);
        assert_refused("{}", VARIABLES(variable), "MOONMQ_SERVER__REPLICATION__TOKEN_FILE",
                       files[i].mend);
        assert_int_equal(load_with("{}", VARIABLES(variable), &error), STATUS_INVALID_CONFIG);
        assert_null(strstr(error.text, "sesame"));
        remove(path);
    }
}

static void bad_variables_are_named_with_the_mend(void **state)
{
    (void)state;
    static const struct {
        const char *variable, *mend;
    } cases[] = {
        {"MOONMQ_SERVER__PROT=1", "did you mean MOONMQ_SERVER__PORT?"},
        {"MOONMQ_SERVER__DATA_DIR=x", "did you mean MOONMQ_SERVER__DATADIR?"},
        {"MOONMQ_REPLICATION__TOKEN=x", "did you mean MOONMQ_SERVER__REPLICATION__TOKEN?"},
        {"MOONMQ_SERVER__KAFKA_NUM_PARTITIONS=1", "MOONMQ_SERVER__KAFKA__NUM_PARTITIONS?"},
        {"MOONMQ_ZZZZ__QQQQQQQQQQQQQQ=1", "unset it"},
        {"MOONMQ_SERVER__=1", "unknown setting"},
        {"MOONMQ_SERVER__PORT=", "empty"},
        {"MOONMQ_SERVER__PORT=9092 ", "integer"},
        {"MOONMQ_SERVER__PORT=0x10", "integer"},
        {"MOONMQ_SERVER__PORT=1e3", "integer"},
        {"MOONMQ_SERVER__PORT=-1", "0..65535"},
        {"MOONMQ_SERVER__PORT=99999999999999999999999999", "0..65535"},
        {"MOONMQ_SERVER__IDLEDEADLINE=inf", "seconds"},
        {"MOONMQ_SERVER__IDLEDEADLINE=1e999", "seconds"},
        {"MOONMQ_SERVER__IDLEDEADLINE=\"5\"", "seconds"},
        {"MOONMQ_SERVER__IDLEDEADLINE=-1", "above 0"},
        {"MOONMQ_LOGGING__LOGTOSTDERR=yes", "true or false"},
        {"MOONMQ_LOGGING__LEVEL=chatty", "DEBUG"},
        {"MOONMQ_SERVER__DATADIR=\xff", "UTF-8"},
        {"MOONMQ_SERVER__KAFKA=1", "block"},
        {"MOONMQ_SERVER__TLS__CERTFILE=x", "not supported"},
        {"MOONMQ_SERVER__PORT_FILE=/x", "no secret"},
        {"MOONMQ_SERVER__PROT_FILE=/x", "unknown setting"},
        {"MOONMQ_SERVER__REPLICATION__TOKEN_FILE=/nowhere/at/all", "cannot be read"},
        {"MOONMQ_SERVER__REPLICATION__TOKEN_FILE=/", "cannot be read"},
        {"MOONMQ_SERVER__REPLICATION__TOKEN_FILE=", "empty"},
        {"MOONMQ_SERVER__REPLICATION__TOKEN=", "empty"},
        {"MOONMQ_SERVER__METRICSAUTH__TOKEN=", "empty"},
        {"MOONMQ_SERVER__REPLICATION__TOKEN__2=x", "at most 2"},
        {"MOONMQ_SERVER__REPLICATION__TOKEN__0=a b", "ASCII"},
        {"MOONMQ_SERVER__REPLICATION__PEERS=x", "PEERS__0__ADDRESS"},
        {"MOONMQ_SERVER__REPLICATION__PEERS__0=x", "ID, ADDRESS, CLIENTADDRESS"},
        {"MOONMQ_SERVER__REPLICATION__PEERS__0__PORT=1", "ID, ADDRESS, CLIENTADDRESS"},
        {"MOONMQ_SERVER__REPLICATION__PEERS__3__ID=1", "the next is 2"},
        {"MOONMQ_SERVER__REPLICATION__PEERS__99999__ID=1", "index"},
        {"MOONMQ_SERVER__REPLICATION__PEERS__2__ADDRESS=h:1", "Peers[2].Id"},
        {"MOONMQ_SERVER__REPLICATION__PEERS__0__ID=1", "own ReplicaId"},
        {"MOONMQ_SERVER__REPLICATION__PEERS__0__ADDRESS=nowhere", "host:port"},
        {"MOONMQ_METRICS_TOKEN_FILE=/nowhere/at/all", "cannot be read"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char name[128];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(cases[i].variable, "="),
                 cases[i].variable);
        assert_refused(REPLICA, VARIABLES(cases[i].variable), name, cases[i].mend);
    }
}

static void who_wants_none_of_them_still_gets_the_programs_own(void **state)
{
    (void)state;
    char path[128];
    struct error error = {0};
    write_secret(path, "{}", 2);
    const struct config_input input = {
        .path = path,
        .environment = "demo",
        .variables =
            VARIABLES("MOONMQ_SERVER__PORT=1", "MOONMQ_SERVER__X=1", "MOONMQ_METRICS_TOKEN=t"),
        .own_variables_only = true};
    assert_int_equal(config_load(&input, &config, NULL, &error), STATUS_OK);
    assert_int_equal(config.port, 9092);
    assert_string_equal(config.metrics_token, "t");
    remove(path);
}

static void two_variables_for_one_key_are_refused(void **state)
{
    (void)state;
    assert_refused("{}", VARIABLES("MOONMQ_SERVER__PORT=1", "moonmq_server__port=1"),
                   "moonmq_server__port", "MOONMQ_SERVER__PORT is set, too");
    assert_refused("{}", VARIABLES("MOONMQ_AUTH__PASSWORD_FILE=/x", "MOONMQ_AUTH__PASSWORD=secret"),
                   "MOONMQ_AUTH__PASSWORD", "MOONMQ_AUTH__PASSWORD_FILE is set, too");
    assert_refused(
        "{}",
        VARIABLES("MOONMQ_SERVER__REPLICATION__TOKEN=x", "MOONMQ_SERVER__REPLICATION__TOKEN__0=x"),
        "MOONMQ_SERVER__REPLICATION__TOKEN__0", "is set, too");
    assert_refused("{}", VARIABLES("MOONMQ_METRICS_TOKEN=x", "MOONMQ_METRICS_TOKEN_FILE=/x"),
                   "MOONMQ_METRICS_TOKEN", "MOONMQ_METRICS_TOKEN_FILE is set, too");
}

static void a_key_that_nobody_set_is_missed_in_the_file_of_its_section(void **state)
{
    (void)state;
    struct error error = {0};
    assert_int_equal(load_with("{\"Server\":{\"Replication\":{\"Enabled\":true,"
                               "\"ReplicatePort\":9095,\"Failover\":true," PEERS "}}}",
                               VARIABLES("MOONMQ_SERVER__REPLICATION__REPLICAID=1"), &error),
                     STATUS_INVALID_CONFIG);
    assert_non_null(strstr(error.text, "/a.json: Server.Replication.ClientAddress: missing"));
}

static void a_clash_of_two_keys_names_the_variable_of_the_second(void **state)
{
    (void)state;
    struct error error = {0};
    assert_int_equal(load_with("{}", VARIABLES("MOONMQ_SERVER__PORT=9090"), &error),
                     STATUS_INVALID_CONFIG);
    assert_non_null(strstr(error.text, "Server.Port is from MOONMQ_SERVER__PORT"));
    assert_int_equal(load_with(REPLICA,
                               VARIABLES("MOONMQ_SERVER__REPLICATION__FAILOVER__"
                                         "ELECTIONTIMEOUTMS=60"),
                               &error),
                     STATUS_INVALID_CONFIG);
    assert_non_null(strstr(error.text, "FAILOVER__ELECTIONTIMEOUTMS"));
}

static void variables_that_are_no_settings_are_left_alone(void **state)
{
    (void)state;
    assert_loads("{}", VARIABLES("MOONMQ_PORT=tcp://10.0.0.1:9092", "MOONMQ_SERVICE_HOST=10.0.0.1",
                                 "MOONMQ_BOOTSTRAP=h:1", "MOONMQ_PASSWORD=x", "MOONMQ_SERVER=x",
                                 "MOONMQ_GATEWAY=x", "MOONMQ_=__", "MOONMQ__X=1", "=x", "",
                                 "MOONMQ_PORT_9092_TCP=a__b"));
    assert_int_equal(config.warning_count, 0);
    assert_loads("{}", VARIABLES("MOONMQ_SERVER_PORT=1", "MOONMQ_GATEWAY__PORT=1",
                                 "MOONMQ_SERVER__TLS=false", "MOONMQ_SERVER__TLS__ENABLED=false"));
    assert_int_equal(config.port, 9092);
    assert_int_equal(config.warning_count, 2);
    assert_non_null(strstr(config.warnings[0], "MOONMQ_SERVER__PORT"));
    assert_non_null(strstr(config.warnings[1], "no effect"));
}

static void thousands_of_variables_and_huge_ones_are_refused_in_good_order(void **state)
{
    (void)state;
    enum { COUNT = 20000, HUGE = 1 << 20 };
    const char **variables = calloc(COUNT + 2, sizeof(*variables));
    char *huge = malloc(HUGE + 1);
    struct error error = {0};
    for (int i = 0; i < COUNT; i++)
        variables[i] = i % 2 == 0 ? "MOONMQ_PORT_1_TCP=x" : "OTHER__X=1";
    assert_loads("{}", variables);
    for (int i = 0; i < COUNT; i++)
        variables[i] = "MOONMQ_SERVER__PORT=1";
    assert_int_equal(load_with("{}", variables, &error), STATUS_INVALID_CONFIG);
    memset(huge, 'X', HUGE);
    huge[HUGE] = '\0';
    memcpy(huge, "MOONMQ_SERVER__DATADIR=", 23);
    assert_refused("{}", VARIABLES(huge), "MOONMQ_SERVER__DATADIR", "longer than");
    huge[22] = '_';
    huge[HUGE - 1] = '=';
    assert_int_equal(load_with("{}", VARIABLES(huge), &error), STATUS_INVALID_CONFIG);
    assert_non_null(strstr(error.text, "unknown setting"));
    free(huge);
    free(variables);
}

static void a_broker_that_logs_nowhere_is_warned_about(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(load("{\"Logging\":{\"LogToStderr\":false}}", &error), STATUS_OK);
    assert_int_equal(config.warning_count, 1);
    assert_non_null(strstr(config.warnings[0], "logs nothing"));
}

static void what_is_said_to_be_off_asks_for_nothing(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(load("{\"Server\":{\"Tls\":false,\"MetricsTls\":{\"Enabled\":false},"
                          "\"MetricsAuth\":{\"Basic\":false},\"Cluster\":{\"Enabled\":false},"
                          "\"Autobalance\":{\"Enabled\":false}}}",
                          &error),
                     STATUS_OK);
    assert_int_equal(load("{\"Server\":{\"Tls\":{\"CertFile\":\"x\"}}}", &error),
                     STATUS_INVALID_CONFIG);
}

static void a_key_written_with_a_dot_is_told_so(void **state)
{
    (void)state;
    struct error error;
    assert_int_equal(load("{\"Server.Port\":1}", &error), STATUS_INVALID_CONFIG);
    assert_non_null(strstr(error.text, "with a dot"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_document_is_a_group_of_one_with_defaults),
        cmocka_unit_test(without_failover_the_role_says_who_pushes),
        cmocka_unit_test(memory_for_requests_holds_the_largest),
        cmocka_unit_test(a_migration_policy_is_one_of_kafkas),
        cmocka_unit_test(failover_true_means_the_block_with_defaults),
        cmocka_unit_test(upper_election_bound_is_twice_the_lower_unless_given),
        cmocka_unit_test(comments_and_fractions_of_seconds_are_accepted),
        cmocka_unit_test(keys_without_effect_are_warned_about),
        cmocka_unit_test(token_may_be_one_or_two_texts),
        cmocka_unit_test(bad_documents_name_the_key_and_the_mend),
        cmocka_unit_test(risky_groups_are_warned_about),
        cmocka_unit_test(the_mode_is_named_and_a_forgotten_enabled_warned_about),
        cmocka_unit_test(a_user_is_warned_to_shut_out_kafka_clients),
        cmocka_unit_test(the_mend_of_a_bad_hash_is_named_once),
        cmocka_unit_test(overlay_beside_the_file_merges_objects_and_replaces_the_rest),
        cmocka_unit_test(variables_lie_over_the_files),
        cmocka_unit_test(a_whole_replica_can_be_made_of_variables),
        cmocka_unit_test(a_variable_changes_one_element_or_one_key_of_a_block),
        cmocka_unit_test(one_of_two_tokens_may_come_from_a_variable),
        cmocka_unit_test(the_metrics_token_of_the_program_counts_last),
        cmocka_unit_test(a_file_may_hold_a_secret_and_loses_one_newline),
        cmocka_unit_test(bad_secret_files_are_told_apart_and_never_quoted),
        cmocka_unit_test(bad_variables_are_named_with_the_mend),
        cmocka_unit_test(who_wants_none_of_them_still_gets_the_programs_own),
        cmocka_unit_test(two_variables_for_one_key_are_refused),
        cmocka_unit_test(a_key_that_nobody_set_is_missed_in_the_file_of_its_section),
        cmocka_unit_test(a_clash_of_two_keys_names_the_variable_of_the_second),
        cmocka_unit_test(variables_that_are_no_settings_are_left_alone),
        cmocka_unit_test(thousands_of_variables_and_huge_ones_are_refused_in_good_order),
        cmocka_unit_test(a_broker_that_logs_nowhere_is_warned_about),
        cmocka_unit_test(what_is_said_to_be_off_asks_for_nothing),
        cmocka_unit_test(a_key_written_with_a_dot_is_told_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
