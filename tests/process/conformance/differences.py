"""differences.py: where our answers are not Apache Kafka's, and why.

Each line is "path: of Kafka | ours", as case.difference() gives it. The reasons are sentences of
docs/kafka-compatibility.md.
"""


class Accepted:
    def __init__(self, why, lines):
        self.why, self.lines = why, lines


ACCEPTED = {}


def because(why, differences):
    """`differences`: by the label of their case, one line or several."""
    for label, lines in differences.items():
        ACCEPTED[label] = Accepted(why, [lines] if isinstance(lines, str) else lines)


def produced(topic, what):
    return f"responses.{topic}.partition_responses.0.{what}"


# ---- records ----

because("Compressed batches are not unfolded when they arrive, except on compacted topics and to recompress them", {
    "Produce: gzip that is none": produced("r-garbage", "error_code: UNKNOWN_SERVER_ERROR | NONE"),
    "Produce: zstd that is none": produced("r-garbage", "error_code: UNKNOWN_SERVER_ERROR | NONE"),
})
because("What Kafka answers with −1 (UNKNOWN_SERVER_ERROR) has a name", {
    "Produce: a codec that is not known":
        produced("r-garbage", "error_code: UNKNOWN_SERVER_ERROR | UNSUPPORTED_COMPRESSION_TYPE"),
    "Produce: gzip that is none, to a compacted topic":
        produced("r-compact", "error_code: UNKNOWN_SERVER_ERROR | INVALID_RECORD"),
    "Produce: gzip that is none, to be recompressed":
        produced("r-gzip", "error_code: UNKNOWN_SERVER_ERROR | INVALID_RECORD"),
    "IncrementalAlterConfigs: an operation that is not known":
        "responses.t-config.error_code: UNKNOWN_SERVER_ERROR | INVALID_REQUEST",
})
because("A batch of a later format, without a producer epoch, or with bytes behind it is refused for good (87); one that is cut "
        "short counts as damaged (2)", {
            "Produce: magic 3": produced("r", "error_code: CORRUPT_MESSAGE | INVALID_RECORD"),
            "Produce: magic 77": produced("r", "error_code: CORRUPT_MESSAGE | INVALID_RECORD"),
            "Produce: a producer without epoch": produced("r-two", "error_code: INVALID_PRODUCER_EPOCH | INVALID_RECORD"),
            "Produce: bytes behind the batch": produced("r-bytes", "error_code: NONE | INVALID_RECORD"),
            "Produce: a batch cut short": produced("r", "error_code: INVALID_RECORD | CORRUPT_MESSAGE"),
        })
because("Of a batch that is refused for its records the first bad one is named, as far as records are looked at: a batch outside "
        "the window of timestamps is refused by its header", {
            "Produce: more records said than there are": produced("r", "record_errors.0: absent | there"),
            "Produce: a length of a record that is wrong": produced("r", "record_errors.0: absent | there"),
            "Produce: some without key, to a compacted topic": produced("r-compact", "record_errors.1: there | absent"),
            "Produce: a timestamp before the window": produced("r-window", "record_errors.0: there | absent"),
            "Produce: a timestamp after the window": produced("r-window", "record_errors.0: there | absent"),
            "Produce: a time far ahead": produced("r", "record_errors.0: there | absent"),
        })
because("A repeated batch is answered like the first time, without a time of appending, which Kafka fills with the batch's own", {
    "Produce: sequence 0 again": produced("r-idempotent", "log_append_time_ms: some | none"),
})
because("A transactional batch in a request without a transactional id is refused with 49, not 42", {
    "Produce: a transactional batch without a transaction":
        produced("r-idempotent", "error_code: INVALID_REQUEST | INVALID_PRODUCER_ID_MAPPING"),
})
because("An isolation level that is not known counts as read_uncommitted", {
    "Fetch: isolation 7": "error_code: UNKNOWN_SERVER_ERROR | NONE",
})
because("Negative leader epochs say that none is known", {
    "ListOffsets: an epoch that is over": "topics.r-read.partitions.0.error_code: FENCED_LEADER_EPOCH | NONE",
    "OffsetForLeaderEpoch: a current epoch that is over":
        "topics.r-read.partitions.0.error_code: FENCED_LEADER_EPOCH | NONE",
    "OffsetForLeaderEpoch: epoch -5": ["topics.r-read.partitions.0.end_offset: 0 | -1",
                                       "topics.r-read.partitions.0.leader_epoch: some | none"],
})
because("Records of internal topics are not deleted on demand (44, as of any compacted topic; Kafka says 17)", {
    "DeleteRecords: of an internal topic":
        "topics.__consumer_offsets.partitions.0.error_code: INVALID_TOPIC_EXCEPTION | POLICY_VIOLATION",
})

# ---- what is named twice ----

because("What a request names twice and may not is answered in each place; CreateTopics does neither, the others the first", {
    "Produce: a partition twice": "responses.r-two.partition_responses.1#2: absent | NONE",
    "ListOffsets: a partition twice": "topics.r-read.partitions.0#2: absent | NONE",
    "CreateTopics: a name twice": "topics.t-new#2: absent | INVALID_REQUEST",
    "CreateTopics: a name twice, and another": ["topics.t-new#2: absent | INVALID_REQUEST",
                                                "topics.t-new-two.topic_id: some | none"],
    "DeleteTopics: a name twice": ["responses.t-goes#2: absent | NONE", "responses.t-goes.topic_id: none | some"],
    "DeleteTopics: an unknown name twice": [
        "responses.no-such-topic#2: absent | UNKNOWN_TOPIC_OR_PARTITION",
        "responses.no-such-topic.error_code: INVALID_REQUEST | UNKNOWN_TOPIC_OR_PARTITION"],
    "CreatePartitions: a topic twice": "results.t-three#2: absent | NONE",
})
because("What is only read is answered once, however often it is named", {
    "FindCoordinator: of a key twice": "coordinators.g#2: NONE | absent",
    "DescribeGroups: a group twice": "groups.g-simple#2: NONE | absent",
    "DescribeUserScramCredentials: a user twice": "results.u.error_code: DUPLICATE_RESOURCE | RESOURCE_NOT_FOUND",
})

# ---- topics ----

because("A topic that is only validated has no id yet", {
    "CreateTopics: only to validate": "topics.t-validated.topic_id: some | none",
})
because("The names of internal topics are refused by CreateTopics (17), whether they are there yet or not", {
    "CreateTopics: an internal topic":
        "topics.__consumer_offsets.error_code: TOPIC_ALREADY_EXISTS | INVALID_TOPIC_EXCEPTION",
})
because("Synonyms that come from the program's default bear the topic's name of the setting", {
    "DescribeConfigs: of a topic, with synonyms": [
        "results.t-config.configs.cleanup.policy.synonyms.cleanup.policy: absent | there",
        "results.t-config.configs.cleanup.policy.synonyms.log.cleanup.policy: there | absent"],
})
because("A topic's settings are Kafka's, but for `remote.log.copy.disable` and `remote.log.delete.on.disable`; files go at once", {
    "DescribeConfigs: of a topic, no key named": [
        "results.t-config.configs.file.delete.delay.ms.value: 60000 | 0",
        "results.t-config.configs.min.insync.replicas.config_source: 3 | 5",
        "results.t-config.configs.remote.log.copy.disable: there | absent",
        "results.t-config.configs.remote.log.delete.on.disable: there | absent"],
})
because("The settings of the topic with the empty name, the defaults of all topics, can't be asked for (42; Kafka says 17)", {
    "DescribeConfigs: of an empty name": "results..error_code: INVALID_TOPIC_EXCEPTION | INVALID_REQUEST",
})
because("`cleanup.policy` with both is always shown as `compact,delete`", {
    "DescribeConfigs: what was appended to":
        "results.t-config.configs.cleanup.policy.value: delete,compact | compact,delete",
})

# ---- groups and transactions ----

because("DeleteGroups of the empty name is refused (24), where Kafka says that it is deleted", {
    "DeleteGroups: an empty name": "results..error_code: NONE | INVALID_GROUP_ID",
})
because("A member whose group was deleted is told 25 and joins again; Kafka says 69, which ends the consumer", {
    "ConsumerGroupHeartbeat: an epoch of -3": "error_code: INVALID_REQUEST | UNKNOWN_MEMBER_ID",
    "ConsumerGroupHeartbeat: leaving an unknown group": "error_code: GROUP_ID_NOT_FOUND | UNKNOWN_MEMBER_ID",
    "ConsumerGroupHeartbeat: an epoch in an unknown group": "error_code: GROUP_ID_NOT_FOUND | UNKNOWN_MEMBER_ID",
})
because("LeaveGroup takes out classic members only; one of the new protocol leaves by its own heartbeat", {
    "LeaveGroup: a group of the new protocol": "members.some.error_code: NONE | UNKNOWN_MEMBER_ID",
    "ConsumerGroupHeartbeat: one that left": "error_code: UNKNOWN_MEMBER_ID | NONE",
})
because("A group that has nothing but offsets pending in a transaction is not there yet: a member that commits to it is told 22", {
    "TxnOffsetCommit: an unknown member": "topics.x.partitions.0.error_code: UNKNOWN_MEMBER_ID | ILLEGAL_GENERATION",
    "TxnOffsetCommit: a generation without member":
        "topics.x.partitions.0.error_code: UNKNOWN_MEMBER_ID | ILLEGAL_GENERATION",
})

# ---- the cluster ----

because("A quota's entity that names a kind twice is refused (42), where Kafka takes the last", {
    "AlterClientQuotas: a kind twice": ["entries.INVALID_REQUEST: absent | INVALID_REQUEST", "entries.NONE: NONE | absent"],
})
because("DescribeClientQuotas by a kind of entity that is not known is refused with 35, also if it is the empty one", {
    "DescribeClientQuotas: an empty kind": "error_code: INVALID_REQUEST | UNSUPPORTED_VERSION",
})
because("UpdateFeatures below version 2 says of each feature what is wrong with it; Kafka says it of the first, for all", {
    f"UpdateFeatures: {what}": "error_code: INVALID_UPDATE_VERSION | NONE"
    for what in ("one that is not known", "a level that is not known", "a lower level as an upgrade",
                 "a kind of update that is not known", "an empty name", "a negative level")
})
because("DescribeQuorum knows of no leader epoch of a topic that is not `__cluster_metadata`", {
    "DescribeQuorum: another topic": "topics.0.partitions.0.leader_epoch: some | none",
})
because("clients push nothing and ask again every five minutes", {
    "GetTelemetrySubscriptions: a new client": [f"accepted_compression_types.{i}: {i + 1} | absent" for i in range(4)],
})
