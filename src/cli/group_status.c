/* group_status.c: see group_status.h. */
#include "cli/group_status.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"

/* A broker that hangs must not keep the others' answers back for long. */
#define ASK_TIMEOUT_MS 2000

/* Who has to log in, or cannot, is told so: the broker's own words are about its protocol. */
static void tell_why(struct replica_status *replica, const struct cli_options *options, int code,
                     const struct moonmq_error *error)
{
    bool asked_to = strstr(error->text, "before logging in") != NULL;
    replica->login_refused = asked_to || code == MOONMQ_AUTH_FAILED;
    const char *text = error->text;
    if (replica->login_refused) {
        bool tried = options->user != NULL && options->password != NULL;
        text = tried ? "the password is wrong, or the user"
                     : "log in: --user NAME and MOONMQ_PASSWORD";
    }
    snprintf(replica->error, sizeof(replica->error), "%s%s%s",
             replica->login_refused ? replica->address : "", replica->login_refused ? ": " : "",
             text);
}

static void ask_one(const struct cli_options *options, const char *host,
                    struct replica_status *replica)
{
    struct moonmq_options client_options;
    struct moonmq_client *client;
    struct moonmq_error error;
    char *text;
    cli_client_options(options, false, &client_options);
    client_options.hosts = &host;
    client_options.host_count = 1;
    client_options.connect_ms_max = 0;
    client_options.connect_timeout_ms = ASK_TIMEOUT_MS;
    client_options.request_timeout_ms = ASK_TIMEOUT_MS;
    client_options.any_replica = true;
    snprintf(replica->address, sizeof(replica->address), "%s", host);
    int code = moonmq_client_new(&client_options, &client, &error);
    if (code == MOONMQ_OK) {
        code = moonmq_status(client, &text, &error);
        moonmq_client_free(client);
    }
    if (code != MOONMQ_OK) {
        tell_why(replica, options, code, &error);
        return;
    }
    json_error_t where;
    replica->status = json_loads(text, 0, &where);
    moonmq_text_free(text);
    if (!json_is_object(replica->status)) {
        json_decref(replica->status);
        replica->status = NULL;
        snprintf(replica->error, sizeof(replica->error), "answered what is no status");
    }
}

static json_int_t epoch_of(const json_t *status)
{
    return json_integer_value(json_object_get(status, "epoch"));
}

static void add_one(const struct cli_options *options, const char *host, struct group_status *group)
{
    struct replica_status *replica = &group->replicas[group->count++];
    ask_one(options, host, replica);
    if (!json_is_true(json_object_get(replica->status, "serving"))) return;
    /* Of two that believe so, the one of the later epoch is right. */
    if (group->leader == NULL || epoch_of(replica->status) > epoch_of(group->leader)) {
        group->leader = replica->status;
    }
}

static bool is_known(const struct group_status *group, const json_t *member)
{
    const char *address = json_string_value(json_object_get(member, "client_address"));
    for (size_t i = 0; i < group->count; i++) {
        const struct replica_status *replica = &group->replicas[i];
        if (address == NULL || strcmp(replica->address, address) == 0) return true;
        if (replica->status != NULL &&
            json_equal(json_object_get(replica->status, "id"), json_object_get(member, "id"))) {
            return true;
        }
    }
    return false;
}

void group_status_ask(const struct cli_options *options, struct group_status *out)
{
    *out = (struct group_status){0};
    for (size_t i = 0; i < options->host_count; i++)
        add_one(options, options->hosts[i], out);
    for (size_t i = 0; i < options->host_count; i++) {
        size_t index;
        json_t *member;
        json_array_foreach(json_object_get(out->replicas[i].status, "members"), index, member)
        {
            if (out->count == ARRAY_COUNT(out->replicas) || is_known(out, member)) continue;
            add_one(options, json_string_value(json_object_get(member, "client_address")), out);
        }
    }
}

void group_status_free(struct group_status *group)
{
    for (size_t i = 0; i < group->count; i++) {
        json_decref(group->replicas[i].status);
    }
}

int group_status_leader_id(const struct group_status *group)
{
    const json_t *id = json_object_get(group->leader, "id");
    return json_is_integer(id) ? (int)json_integer_value(id) : -1;
}
