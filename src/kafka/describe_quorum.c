/* DescribeQuorum (55): the group as the voters of Kafka's metadata log, for kafka-metadata-quorum
 * and the like. Its offsets are those of the Raft log; the leader answers, a follower forwards. */
#include "io/loop.h"
#include "kafka/errors.h"
#include "kafka/forward.h"
#include "kafka/handlers.h"
#include "kafka/kafka_state.h"
#include "kafka/view.h"

#define METADATA_TOPIC "__cluster_metadata"
#define LISTENER_NAME  "PLAINTEXT"

typedef struct kafka_describe_quorum_response_partition partition_answer;

void describe_quorum_refuse(struct kafka_request *request, enum status status)
{
    KAFKA_ANSWER(request, describe_quorum)->error_code = kafka_request_error(request, status);
    kafka_finish(request);
}

/* A voter is sent what is new at once, so when it last answered it had everything but that. */
static void put_voters(struct kafka_request *request, const struct group_quorum *quorum,
                       partition_answer *out)
{
    int64_t now_ms = loop_wall_ms(request->kafka->loop);
    struct kafka_describe_quorum_response_current_voter *voters =
        kafka_describe_quorum_response_current_voter_new(&request->arena,
                                                         (int32_t)quorum->voter_count);
    if (voters == NULL) return;
    for (uint32_t i = 0; i < quorum->voter_count; i++) {
        const struct group_voter *voter = &quorum->voters[i];
        int64_t heard_ms = voter->heard_us_ago < 0 ? -1 : now_ms - voter->heard_us_ago / 1000;
        voters[i].replica_id = voter->id;
        voters[i].replica_directory_id = voter->incarnation;
        voters[i].log_end_offset = voter->log_end;
        voters[i].last_fetch_timestamp = heard_ms;
        voters[i].last_caught_up_timestamp = heard_ms;
    }
    out->current_voters.items = voters;
    out->current_voters.count = (int32_t)quorum->voter_count;
}

static void describe(struct kafka_request *request, const struct group_quorum *quorum,
                     bool is_metadata, int32_t index, partition_answer *out)
{
    out->partition_index = index;
    if (!is_metadata || index != 0) {
        out->error_code = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        out->error_message = kafka_text("only " METADATA_TOPIC "-0 has a quorum");
        return;
    }
    out->leader_id = kafka_view(request)->leader_id;
    out->leader_epoch = kafka_view(request)->epoch;
    out->high_watermark = quorum->committed;
    put_voters(request, quorum, out);
}

static void describe_asked(struct kafka_request *request, const struct group_quorum *quorum)
{
    const struct kafka_describe_quorum_request *message = KAFKA_MESSAGE(request, describe_quorum);
    struct kafka_describe_quorum_response *answer = KAFKA_ANSWER(request, describe_quorum);
    int32_t count = message->topics.count;
    answer->topics.items = kafka_describe_quorum_response_topic_new(&request->arena, count);
    if (answer->topics.items == NULL) return;
    for (int32_t i = 0; i < count; i++) {
        const struct kafka_describe_quorum_request_topic *asked = &message->topics.items[i];
        struct kafka_describe_quorum_response_topic *out = &answer->topics.items[i];
        bool is_metadata = kafka_slice_equal(asked->topic_name, kafka_text(METADATA_TOPIC));
        answer->topics.count++;
        out->topic_name = asked->topic_name;
        out->partitions.items =
            kafka_describe_quorum_response_partition_new(&request->arena, asked->partitions.count);
        for (int32_t k = 0; k < asked->partitions.count && !request->arena.failed; k++) {
            describe(request, quorum, is_metadata, asked->partitions.items[k].partition_index,
                     &out->partitions.items[out->partitions.count++]);
        }
    }
}

static void put_nodes(struct kafka_request *request)
{
    const struct group_view *view = kafka_view(request);
    struct kafka_describe_quorum_response *answer = KAFKA_ANSWER(request, describe_quorum);
    int32_t count = (int32_t)view->member_count;
    struct kafka_describe_quorum_response_node *nodes =
        kafka_describe_quorum_response_node_new(&request->arena, count);
    struct kafka_describe_quorum_response_listener *listeners =
        kafka_describe_quorum_response_listener_new(&request->arena, count);
    if (request->arena.failed) return;
    for (int32_t i = 0; i < count; i++) {
        struct kafka_node node = kafka_node_of(request, &view->members[i]);
        listeners[i] = (struct kafka_describe_quorum_response_listener){
            kafka_text(LISTENER_NAME), node.host, (uint16_t)node.port};
        nodes[i].node_id = node.id;
        nodes[i].listeners.items = &listeners[i];
        nodes[i].listeners.count = 1;
    }
    answer->nodes.items = nodes;
    answer->nodes.count = count;
}

void describe_quorum_handle(struct kafka_request *request)
{
    if (kafka_forward(request)) return;
    const struct group_port *port = broker_group_port(kafka_request_broker(request));
    struct group_quorum quorum;
    port->quorum(port->context, &quorum);
    describe_asked(request, &quorum);
    put_nodes(request);
    kafka_finish(request);
}
