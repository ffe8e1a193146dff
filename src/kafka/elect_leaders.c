/* ElectLeaders (43): makes the preferred replica lead: the first that Metadata names, the lowest
 * id.
 *
 * One leader leads all partitions, so asking for one partition moves them all. It is done as
 * `moonmq leader transfer` does it, and answered when the new leader has taken over. An unclean
 * election is never held: while there is somebody to answer, there is a leader. */
#include "base/assert.h"
#include "kafka/errors.h"
#include "kafka/forward.h"
#include "kafka/handlers.h"
#include "kafka/view.h"

enum election_type { ELECTION_PREFERRED = 0, ELECTION_UNCLEAN = 1 };

typedef struct kafka_elect_leaders_response_topic topic_answer;

static void put_partition(topic_answer *out, int32_t partition, int16_t error)
{
    int32_t at = out->partition_result.count++;
    out->partition_result.items[at].partition_id = partition;
    out->partition_result.items[at].error_code = error;
}

static bool make_room(struct kafka_request *request, topic_answer *out, int32_t partitions)
{
    out->partition_result.items =
        kafka_elect_leaders_response_partition_new(&request->arena, partitions);
    return out->partition_result.items != NULL;
}

/* Every partition asked for, those that exist with `error`. */
static void put_asked(struct kafka_request *request, int16_t error)
{
    const struct kafka_elect_leaders_request *message = KAFKA_MESSAGE(request, elect_leaders);
    struct kafka_elect_leaders_response *answer = KAFKA_ANSWER(request, elect_leaders);
    int32_t count = message->topic_partitions.count;
    topic_answer *topics = kafka_elect_leaders_response_topic_new(&request->arena, count);
    if (topics == NULL) return;
    answer->replica_election_results.items = topics;
    answer->replica_election_results.count = count;
    for (int32_t i = 0; i < count; i++) {
        const struct kafka_elect_leaders_request_topic_partition *asked =
            &message->topic_partitions.items[i];
        const struct topic *topic = kafka_find_topic(request, asked->topic);
        topics[i].topic = asked->topic;
        if (!make_room(request, &topics[i], asked->partitions.count)) return;
        for (int32_t k = 0; k < asked->partitions.count; k++) {
            int32_t index = asked->partitions.items[k];
            bool known = kafka_find_partition(topic, index) != NULL;
            put_partition(&topics[i], index, known ? error : KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
        }
    }
}

/* All that exist; where nothing was to be done they are left out. */
static void put_all(struct kafka_request *request, int16_t error)
{
    struct kafka_elect_leaders_response *answer = KAFKA_ANSWER(request, elect_leaders);
    struct broker *broker = kafka_request_broker(request);
    if (error == KAFKA_ELECTION_NOT_NEEDED) return;
    int32_t count = (int32_t)catalog_topic_count(broker), at = 0;
    topic_answer *topics = kafka_elect_leaders_response_topic_new(&request->arena, count);
    if (topics == NULL) return;
    struct topic *topic = catalog_next(broker, NULL);
    for (; topic != NULL && at < count; topic = catalog_next(broker, topic)) {
        topic_answer *out = &topics[at++];
        out->topic = kafka_text(topic_name(topic));
        if (!make_room(request, out, (int32_t)topic_partition_count(topic))) return;
        for (uint32_t i = 0; i < topic_partition_count(topic); i++)
            put_partition(out, (int32_t)i, error);
    }
    answer->replica_election_results.items = topics;
    answer->replica_election_results.count = at;
}

static void explain(struct kafka_request *request, int16_t error, struct slice text)
{
    struct kafka_elect_leaders_response *answer = KAFKA_ANSWER(request, elect_leaders);
    for (int32_t i = 0; i < answer->replica_election_results.count; i++) {
        topic_answer *topic = &answer->replica_election_results.items[i];
        for (int32_t k = 0; k < topic->partition_result.count; k++) {
            struct kafka_elect_leaders_response_partition *each = &topic->partition_result.items[k];
            if (each->error_code == error) each->error_message = text;
        }
    }
}

static void answer_with(struct kafka_request *request, int16_t error, const char *text)
{
    if (KAFKA_MESSAGE(request, elect_leaders)->topic_partitions.count < 0) {
        put_all(request, error);
    } else {
        put_asked(request, error);
    }
    if (text != NULL && !request->arena.failed) {
        explain(request, error, arena_copy(&request->arena, kafka_text(text)));
    }
    kafka_finish(request);
}

/* Version 0 has no code for the whole: there every entry carries it. */
static void refuse(struct kafka_request *request, int16_t error)
{
    KAFKA_ANSWER(request, elect_leaders)->error_code = error;
    if (KAFKA_MESSAGE(request, elect_leaders)->topic_partitions.count >= 0) {
        put_asked(request, error);
    }
    kafka_finish(request);
}

void elect_leaders_refuse(struct kafka_request *request, enum status status)
{
    refuse(request, kafka_request_error(request, status));
}

static void handed_over(void *context, enum status status, const struct error *error)
{
    struct kafka_request *request = context;
    const char *text = error != NULL ? error->text : status_text(status);
    switch (status) {
    case STATUS_OK: answer_with(request, KAFKA_NONE, NULL); return;
    case STATUS_NOT_LEADER: refuse(request, KAFKA_NOT_CONTROLLER); return;
    case STATUS_NOT_ENOUGH_REPLICAS: /* it is not in sync */
    case STATUS_UNSUPPORTED:         /* this group never hands over */
        answer_with(request, KAFKA_PREFERRED_LEADER_NOT_AVAILABLE, text);
        return;
    default: answer_with(request, kafka_request_error(request, status), text); return;
    }
}

void elect_leaders_handle(struct kafka_request *request)
{
    if (kafka_forward(request)) return;
    const struct group_view *view = kafka_view(request);
    const struct group_port *port = broker_group_port(kafka_request_broker(request));
    int8_t type = KAFKA_MESSAGE(request, elect_leaders)->election_type;
    ASSERT(view->member_count > 0);
    int32_t preferred = view->members[0].id;
    if (type != ELECTION_PREFERRED && type != ELECTION_UNCLEAN) {
        refuse(request, KAFKA_INVALID_REQUEST);
    } else if (type == ELECTION_UNCLEAN || preferred == view->leader_id) {
        answer_with(request, KAFKA_ELECTION_NOT_NEEDED, NULL);
    } else {
        port->transfer(port->context, preferred, handed_over, request);
    }
}
