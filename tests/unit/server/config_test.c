/* config_test.c: what a configuration may say, and what a bad one is told. Keys and defaults:
 * native-protocol.md section 6, replication.md section 3, decisions 1–6. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    assert_int_equal(config_load(base, "Night", &config, &error), STATUS_OK);
    assert_int_equal(config.port, 2222);
    assert_string_equal(config.host, "127.0.0.1");
    assert_int_equal(config_load(base, "Day", &config, &error), STATUS_OK);
    assert_int_equal(config.port, 1111);
    write_text(over, "{\"Server\":{\"Port\":}}");
    assert_int_equal(config_load(base, "Night", &config, &error), STATUS_INVALID_CONFIG);
    assert_non_null(strstr(error.text, "line 1"));
    write_text(over, "{\"Server\":{\"Port\":true}}");
    assert_int_equal(config_load(base, "Night", &config, &error), STATUS_INVALID_CONFIG);
    assert_non_null(strstr(error.text, over));
    remove(base);
    assert_int_equal(config_load(base, "Day", &config, &error), STATUS_INVALID_CONFIG);
    assert_non_null(strstr(error.text, "--config"));
    remove(over);
    remove(dir);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
