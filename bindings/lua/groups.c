/* groups.c: membership in consumer groups, and methods that tell of them. */
#include <stdlib.h>
#include <string.h>

#include "client.h"

void lua_client_forget_assignments(struct lua_client *self)
{
    for (size_t i = 0; i < self->assignment_count; i++) {
        free(self->assignments[i].topic);
        free(self->assignments[i].partitions);
    }
    free(self->assignments);
    self->assignments = NULL;
    self->assignment_count = 0;
}

/* ---- groups ---- */

static bool keep_one(struct assignment *kept, const struct moonmq_assignment *told)
{
    kept->topic = strdup(told->topic);
    kept->partitions = malloc((told->partition_count + 1) * sizeof(*kept->partitions));
    if (kept->topic == NULL || kept->partitions == NULL) return false;
    memcpy(kept->partitions, told->partitions, told->partition_count * sizeof(*kept->partitions));
    kept->count = told->partition_count;
    return true;
}

static void note_assigned(void *context, const struct moonmq_assignment *assignments, size_t count)
{
    struct lua_client *self = context;
    lua_client_forget_assignments(self);
    self->assignments = calloc(count + 1, sizeof(*self->assignments));
    bool kept = self->assignments != NULL;
    for (size_t i = 0; kept && i < count; i++) {
        self->assignment_count++;
        kept = keep_one(&self->assignments[i], &assignments[i]);
    }
}

static void push_partitions(lua_State *L, const int32_t *partitions, size_t count)
{
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushinteger(L, partitions[i] + 1);
        lua_rawseti(L, -2, (int)i + 1);
    }
}

/* {topic → {partition, …}} */
static int push_own_assignment(lua_State *L, const struct lua_client *self)
{
    lua_createtable(L, 0, (int)self->assignment_count);
    for (size_t i = 0; i < self->assignment_count; i++) {
        push_partitions(L, self->assignments[i].partitions, self->assignments[i].count);
        lua_setfield(L, -2, self->assignments[i].topic);
    }
    return 1;
}

/* join_group(group, topics, member_id) */
static int client_join_group(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
    struct moonmq_join join = {.group = luaL_checkstring(L, 2),
                               .member_id = luaL_optstring(L, 4, NULL),
                               .assigned = note_assigned,
                               .context = self};
    luaL_checktype(L, 3, LUA_TTABLE);
    join.topic_count = lua_rawlen(L, 3);
    const char **topics = lua_newuserdata(L, (join.topic_count + 1) * sizeof(*topics));
    for (size_t i = 0; i < join.topic_count; i++) {
        lua_rawgeti(L, 3, (int)i + 1);
        if (lua_type(L, -1) != LUA_TSTRING) luaL_error(L, "topic %d is not a string", (int)i + 1);
        topics[i] = lua_tostring(L, -1);
        lua_pop(L, 1);
    }
    join.topics = topics;
    struct moonmq_error error;
    if (moonmq_join_group(self->client, &join, &error) != MOONMQ_OK)
        return lua_client_fail(L, &error);
    lua_createtable(L, 0, 2);
    field_set_text(L, "member_id", moonmq_member_id(self->client));
    push_own_assignment(L, self);
    lua_setfield(L, -2, "assignment");
    return 1;
}

/* assignment(): what this member reads by the last heartbeat. */
static int client_assignment(lua_State *L)
{
    return push_own_assignment(L, lua_client_check(L));
}

static int client_group_heartbeat(lua_State *L)
{
    struct moonmq_error error;
    return lua_client_done(L, moonmq_group_heartbeat(lua_client_check(L)->client, &error), &error);
}

static int client_leave_group(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
    struct moonmq_error error;
    int code = moonmq_leave_group(self->client, &error);
    lua_client_forget_assignments(self);
    return lua_client_done(L, code, &error);
}

static int push_groups(lua_State *L)
{
    const struct moonmq_groups *groups = lua_touserdata(L, 1);
    lua_createtable(L, (int)groups->count, 0);
    for (size_t i = 0; i < groups->count; i++) {
        lua_createtable(L, 0, 3);
        field_set_text(L, "group_id", groups->groups[i].group);
        field_set_text(L, "state", groups->groups[i].state);
        field_set_integer(L, "member_count", groups->groups[i].members);
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

static int client_list_groups(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
    struct moonmq_groups *groups;
    struct moonmq_error error;
    if (moonmq_list_groups(self->client, &groups, &error) != MOONMQ_OK)
        return lua_client_fail(L, &error);
    int failed = lua_client_push(L, push_groups, groups);
    moonmq_groups_free(groups);
    return failed == 0 ? 1 : lua_error(L);
}

static void push_members(lua_State *L, const struct moonmq_group *group)
{
    lua_createtable(L, (int)group->member_count, 0);
    for (size_t i = 0; i < group->member_count; i++) {
        const struct moonmq_group_member *member = &group->members[i];
        lua_createtable(L, 0, 2);
        field_set_text(L, "member_id", member->member_id);
        lua_createtable(L, 0, (int)member->assignment_count);
        for (size_t j = 0; j < member->assignment_count; j++) {
            const struct moonmq_assignment *assignment = &member->assignments[j];
            push_partitions(L, assignment->partitions, assignment->partition_count);
            lua_setfield(L, -2, assignment->topic);
        }
        lua_setfield(L, -2, "assignment");
        lua_rawseti(L, -2, (int)i + 1);
    }
}

static int push_group(lua_State *L)
{
    const struct moonmq_group *group = lua_touserdata(L, 1);
    lua_createtable(L, 0, 4);
    field_set_text(L, "group_id", group->group);
    field_set_text(L, "state", group->state);
    push_members(L, group);
    lua_setfield(L, -2, "members");
    lua_createtable(L, (int)group->offset_count, 0);
    for (size_t i = 0; i < group->offset_count; i++) {
        lua_createtable(L, 0, 3);
        field_set_text(L, "topic", group->offsets[i].topic);
        field_set_integer(L, "partition", group->offsets[i].partition + 1);
        field_set_integer(L, "offset", group->offsets[i].offset);
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_setfield(L, -2, "offsets");
    return 1;
}

static int client_describe_group(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
    const char *name = luaL_checkstring(L, 2);
    struct moonmq_group *group;
    struct moonmq_error error;
    if (moonmq_describe_group(self->client, name, &group, &error) != MOONMQ_OK) {
        return lua_client_fail(L, &error);
    }
    int failed = lua_client_push(L, push_group, group);
    moonmq_group_free(group);
    return failed == 0 ? 1 : lua_error(L);
}

static int client_delete_group(lua_State *L)
{
    struct lua_client *self = lua_client_check(L);
    struct moonmq_error error;
    return lua_client_done(L, moonmq_delete_group(self->client, luaL_checkstring(L, 2), &error),
                           &error);
}

const luaL_Reg lua_client_groups[] = {
    {"join_group", client_join_group},           {"assignment", client_assignment},
    {"group_heartbeat", client_group_heartbeat}, {"leave_group", client_leave_group},
    {"list_groups", client_list_groups},         {"describe_group", client_describe_group},
    {"delete_group", client_delete_group},       {NULL, NULL},
};
