/* cmd_status.c: `moonmq status`: the whole replication group at one look. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "cli/commands.h"
#include "cli/group_status.h"
#include "cli/options.h"
#include "cli/output.h"

static json_int_t integer_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "-" : text;
}

/* ---- one replica's row ---- */

static bool is_in_isr(const json_t *leader, json_int_t id)
{
    size_t index;
    json_t *member;
    json_array_foreach(json_object_get(leader, "isr"), index, member)
    {
        if (json_integer_value(member) == id) return true;
    }
    return false;
}

static const json_t *follower_of(const json_t *leader, json_int_t id)
{
    size_t index;
    json_t *follower;
    json_array_foreach(json_object_get(leader, "followers"), index, follower)
    {
        if (integer_of(follower, "id") == id) return follower;
    }
    return NULL;
}

static void add_lag(struct output_table *table, const json_t *follower)
{
    if (follower == NULL) {
        output_table_add(table, "-");
        output_table_add(table, "-");
        output_table_add(table, "-");
        return;
    }
    json_int_t contact_ms = integer_of(follower, "last_contact_ms");
    if (contact_ms < 0) { /* how far it is nobody knows */
        output_table_add(table, "-");
        output_table_add(table, "-");
        output_table_add(table, "never");
        return;
    }
    output_table_add(table, "%lld", (long long)integer_of(follower, "lag_records"));
    output_table_add(table, "%lld", (long long)integer_of(follower, "lag_bytes"));
    output_table_add(table, "%lld ms ago", (long long)contact_ms);
}

static const char *role_of(const json_t *status)
{
    if (json_is_true(json_object_get(status, "serving"))) return "leader";
    return strcmp(text_of(status, "role"), "leader") == 0 ? "taking over" : "follower";
}

/* "3 d 4 h", "4 h 5 min", "5 min", "12 s": what one asks is whether it was started just now. */
static void add_uptime(struct output_table *table, const json_t *status)
{
    if (!json_is_integer(json_object_get(status, "uptime_ms"))) {
        output_table_add(table, "-");
        return;
    }
    long long seconds = (long long)(integer_of(status, "uptime_ms") / 1000);
    long long minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
    if (days > 0) {
        output_table_add(table, "%lld d %lld h", days, hours % 24);
    } else if (hours > 0) {
        output_table_add(table, "%lld h %lld min", hours, minutes % 60);
    } else if (minutes > 0) {
        output_table_add(table, "%lld min", minutes);
    } else {
        output_table_add(table, "%lld s", seconds);
    }
}

static void add_in_sync(struct output_table *table, const struct group_status *group, json_int_t id)
{
    bool in_sync = is_in_isr(group->leader, id);
    output_table_add(table, "%s", group->leader == NULL ? "?" : in_sync ? "yes" : "no");
    output_table_set_tone(table, in_sync ? OUTPUT_GOOD : OUTPUT_BAD);
}

static void add_replica(struct output_table *table, const struct group_status *group,
                        const struct replica_status *replica)
{
    json_int_t id = integer_of(replica->status, "id");
    output_table_add(table, "%lld", (long long)id);
    output_table_add(table, "%s", replica->address);
    output_table_add(table, "%s", role_of(replica->status));
    if (strcmp(role_of(replica->status), "leader") == 0) output_table_set_tone(table, OUTPUT_GOOD);
    output_table_add_number(table, integer_of(replica->status, "epoch"));
    add_in_sync(table, group, id);
    add_lag(table, follower_of(group->leader, id));
    output_table_add(table, "%s", text_of(replica->status, "version"));
    add_uptime(table, replica->status);
}

/* Where the leader's configuration says that it is. */
static const char *address_of(const json_t *leader, json_int_t id)
{
    size_t index;
    json_t *member;
    json_array_foreach(json_object_get(leader, "members"), index, member)
    {
        if (integer_of(member, "id") == id) return text_of(member, "client_address");
    }
    return "-";
}

/* A follower the leader knows, and that did not answer or that --bootstrap does not name. */
static void add_unnamed(struct output_table *table, const struct group_status *group)
{
    size_t index;
    json_t *follower;
    json_array_foreach(json_object_get(group->leader, "followers"), index, follower)
    {
        json_int_t id = integer_of(follower, "id");
        bool named = false;
        for (size_t i = 0; i < group->count; i++) {
            const json_t *status = group->replicas[i].status;
            if (status != NULL && integer_of(status, "id") == id) named = true;
        }
        if (named) continue;
        output_table_add(table, "%lld", (long long)id);
        output_table_add(table, "%s", address_of(group->leader, id));
        output_table_add(table, "follower");
        output_table_add(table, "?");
        add_in_sync(table, group, id);
        add_lag(table, follower);
        output_table_add(table, "-");
        output_table_add(table, "-");
    }
}

/* ---- the whole ---- */

static void print_heading(const struct group_status *group)
{
    const json_t *leader = group->leader;
    if (leader == NULL) {
        output_toned_line(OUTPUT_BAD, "no leader serves");
        putchar('\n');
        return;
    }
    json_int_t in_sync = integer_of(leader, "in_sync_now"),
               least = integer_of(leader, "min_insync");
    json_int_t members = (json_int_t)json_array_size(json_object_get(leader, "followers")) + 1;
    output_toned_line(in_sync < least     ? OUTPUT_BAD
                      : in_sync < members ? OUTPUT_DOUBTFUL
                                          : OUTPUT_GOOD,
                      "leader %lld, epoch %lld, %lld in sync of %lld (at least %lld needed)",
                      (long long)integer_of(leader, "id"), (long long)integer_of(leader, "epoch"),
                      (long long)in_sync, (long long)members, (long long)least);
    putchar('\n');
}

/* ---- static mode: every broker stands alone, one pushes to the others ---- */

static void add_pushed_to(struct output_table *table, const json_t *status, const json_t *follower)
{
    output_table_add(table, "%lld", (long long)integer_of(status, "id"));
    output_table_add(table, "%lld", (long long)integer_of(follower, "id"));
    output_table_add(table, "%s", text_of(follower, "address"));
    output_table_add(table, "%s",
                     json_is_true(json_object_get(follower, "connected")) ? "yes" : "no");
    output_table_add(table, "%lld", (long long)integer_of(follower, "refused_partitions"));
    add_lag(table, follower);
}

static bool print_static(const struct group_status *group)
{
    static const char *const titles[] = {"leader",  "follower",    "address",   "connected",
                                         "refuses", "lag records", "lag bytes", "last contact"};
    struct output_table table;
    size_t followers = 0, index;
    bool any = false;
    json_t *follower;
    output_table_begin(&table, titles, ARRAY_COUNT(titles));
    for (size_t i = 0; i < group->count; i++) {
        const json_t *status = group->replicas[i].status;
        const json_t *mode = json_object_get(status, "static");
        if (mode == NULL) continue;
        any = true;
        output_line("%s: replica %lld, static mode, role %s", group->replicas[i].address,
                    (long long)integer_of(status, "id"), text_of(mode, "role"));
        json_array_foreach(json_object_get(mode, "followers"), index, follower)
        {
            add_pushed_to(&table, status, follower);
            followers++;
        }
    }
    if (followers > 0) {
        putchar('\n');
        output_table_print(&table);
    }
    return any;
}

static void print_refusals(const struct group_status *group)
{
    for (size_t i = 0; i < group->count; i++) {
        const json_t *mode = json_object_get(group->replicas[i].status, "static");
        size_t index;
        json_t *follower;
        json_array_foreach(json_object_get(mode, "followers"), index, follower)
        {
            const char *refusal = json_string_value(json_object_get(follower, "refusal"));
            if (refusal != NULL) output_toned_line(OUTPUT_BAD, "refused: %s", refusal);
        }
        json_array_foreach(json_object_get(group->replicas[i].status, "followers"), index, follower)
        {
            const char *refusal = json_string_value(json_object_get(follower, "refused"));
            if (refusal == NULL) continue;
            output_toned_line(OUTPUT_BAD, "replica %lld refused: %s",
                              (long long)integer_of(follower, "id"), refusal);
        }
    }
}

static void print_rest(const struct group_status *group)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct replica_status *replica = &group->replicas[i];
        if (replica->status == NULL) output_toned_line(OUTPUT_BAD, "no answer: %s", replica->error);
    }
    for (size_t i = 0; i < group->count; i++) {
        size_t index;
        json_t *alarm;
        json_array_foreach(json_object_get(group->replicas[i].status, "alarms"), index, alarm)
        {
            output_toned_line(OUTPUT_BAD, "alarm at %s: %s", group->replicas[i].address,
                              json_string_value(alarm));
        }
    }
}

static void print_table(const struct group_status *group)
{
    static const char *const titles[] = {"id",      "address",     "role",      "epoch",
                                         "in sync", "lag records", "lag bytes", "last contact",
                                         "version", "up"};
    struct output_table table;
    output_table_begin(&table, titles, ARRAY_COUNT(titles));
    for (size_t i = 0; i < group->count; i++) {
        if (group->replicas[i].status != NULL) add_replica(&table, group, &group->replicas[i]);
    }
    add_unnamed(&table, group);
    output_table_print(&table);
}

static void print_text(const struct group_status *group)
{
    bool answered = false, login_refused = false;
    for (size_t i = 0; i < group->count; i++) {
        if (group->replicas[i].status != NULL) answered = true;
        if (group->replicas[i].login_refused) login_refused = true;
    }
    if (!print_static(group)) {
        if (answered || !login_refused) print_heading(group);
        if (answered) print_table(group);
    }
    print_refusals(group);
    print_rest(group);
}

static void print_json(const struct group_status *group)
{
    json_t *replicas = json_array();
    for (size_t i = 0; i < group->count; i++) {
        const struct replica_status *replica = &group->replicas[i];
        json_t *row = json_pack("{s:s}", "address", replica->address);
        if (replica->status != NULL) {
            json_object_set(row, "status", replica->status);
        } else {
            json_object_set_new(row, "error", output_name(replica->error));
        }
        json_array_append_new(replicas, row);
    }
    int leader_id = group_status_leader_id(group);
    output_json(json_pack(
        "{s:o, s:o, s:o}", "leader", leader_id < 0 ? json_null() : json_integer(leader_id), "epoch",
        group->leader == NULL ? json_null() : json_integer(integer_of(group->leader, "epoch")),
        "replicas", replicas));
}

static int status(const struct command *command, int argc, char **argv)
{
    struct cli_options options;
    cli_parse(command, cli_parse_nothing, argc, argv, NULL, &options);
    struct group_status group;
    group_status_ask(&options, &group);
    if (options.format == CLI_FORMAT_JSON) {
        print_json(&group);
    } else {
        print_text(&group);
    }
    int exit_code = group.leader == NULL ? CLI_FAILED : CLI_OK;
    group_status_free(&group);
    return exit_code;
}

const struct command command_status = {
    .name = "status",
    .summary = "show the whole replication group at one look",
    .run = status,
    .option_set = COMMAND_OPTIONS_CLIENT,
    .about =
        "Show the replication group: who leads, who is in sync, who lags, which versions run and "
        "since when, and the alarms. Asks every broker "
        "that --bootstrap names, and those that these know of.\n\nExit code 0 if a leader "
        "serves, else 1.",
    .examples = "moonmq status --bootstrap broker-1:9092,broker-2:9092,broker-3:9092\n",
    .json = "{\"leader\":1,\"epoch\":7,\"replicas\":[{\"address\":\"10.0.0.1:9092\","
            "\"status\":{\"KEY\":\"VALUE\"}}]}",
};
