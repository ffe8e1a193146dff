/* subscribe.c: SUBSCRIBE: from now on records of the topic come unasked (push.h). */
#include "native/native_state.h"
#include "native/operations.h"
#include "native/push.h"

void native_subscribe(struct native_request *request, const union wire_message *message)
{
    const struct wire_subscribe *subscribe = &message->subscribe;
    const struct topic *topic = catalog_find(
        native_broker(request), (const char *)subscribe->topic.data, subscribe->topic.bytes);
    if (topic == NULL) {
        native_fail(request, WIRE_CODE_TOPIC_MISSING, "no topic %.*s", (int)subscribe->topic.bytes,
                    (const char *)subscribe->topic.data);
        return;
    }
    if (topic_is_internal(topic)) {
        native_fail_status(request, STATUS_TOPIC_FORBIDDEN, NULL);
        return;
    }
    const struct native_reader reader = {subscribe->group, subscribe->isolation == 1, true};
    if (native_session_bind(request, &reader, topic) == NULL) return;
    /* A member has what it is assigned of the topic. */
    struct native_membership *member = request->connection->membership;
    if (member != NULL && group_session_is_settled(member->session)) {
        native_membership_align(member);
    }
    if (native_push_begin(request->connection)) {
        native_answer_ok(request);
    } else {
        native_fail(request, WIRE_CODE_INTERNAL, "out of memory");
    }
}
