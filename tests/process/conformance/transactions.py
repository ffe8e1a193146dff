"""transactions.py: InitProducerId, transactions, and what is shown of them."""
from batches import encode_batch
from conformance.case import Case, saved

TOPICS = {"x": {"partitions": 2}, "x-compact": {"cleanup.policy": "compact"}}


def begin(label, name, timeout=60000, producer=-1, epoch=-1, version=4, save=None):
    return Case(f"InitProducerId: {label}", "InitProducerId", version, {
        "transactional_id": name, "transaction_timeout_ms": timeout, "producer_id": producer, "producer_epoch": epoch}, save)


PID, EPOCH = saved("x-pid"), saved("x-epoch")


def add(label, name="x", producer=PID, epoch=EPOCH, topic="x", partition=0, version=3):
    return Case(f"AddPartitionsToTxn: {label}", "AddPartitionsToTxn", version, {
        "v3_and_below_transactional_id": name, "v3_and_below_producer_id": producer, "v3_and_below_producer_epoch": epoch,
        "v3_and_below_topics": [{"name": topic, "partitions": [partition]}]})


def add_offsets(label, name="x", producer=PID, epoch=EPOCH, group="x-group"):
    return Case(f"AddOffsetsToTxn: {label}", "AddOffsetsToTxn", 3, {
        "transactional_id": name, "producer_id": producer, "producer_epoch": epoch, "group_id": group})


def end(label, commit=True, name="x", producer=PID, epoch=EPOCH, version=3, save=None):
    return Case(f"EndTxn: {label}", "EndTxn", version, {
        "transactional_id": name, "producer_id": producer, "producer_epoch": epoch, "committed": commit}, save)


def commit(label, name="x", producer=PID, epoch=EPOCH, group="x-group", generation=-1, member="", topic="x", partition=0, metadata="",
           version=3):
    return Case(f"TxnOffsetCommit: {label}", "TxnOffsetCommit", version, {
        "transactional_id": name, "group_id": group, "producer_id": producer, "producer_epoch": epoch,
        "generation_id_or_member_epoch": generation, "member_id": member, "topics": [{"name": topic, "partitions": [
            {"partition_index": partition, "committed_offset": 3, "committed_leader_epoch": -1, "committed_metadata": metadata}]}]})


def produce(label, sequence, producer="x-pid", epoch="x-epoch", topic="x", partition=0, version=9, attributes=16):
    return Case(f"Produce in a transaction: {label}", "Produce", version, {
        "transactional_id": "x", "acks": -1, "timeout_ms": 10000, "topic_data": [{"name": topic, "partition_data": [
            {"index": partition, "records": lambda kept: encode_batch(
                [b"v"], producer=(kept[producer], kept[epoch], sequence), attributes=attributes)}]}]})


def fetch(label, isolation, offset=0):
    return Case(f"Fetch: {label}", "Fetch", 11, {
        "replica_id": -1, "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "isolation_level": isolation, "session_epoch": -1, "topics": [
            {"topic": "x", "partitions": [{"partition": 0, "current_leader_epoch": -1, "fetch_offset": offset,
                                           "log_start_offset": -1, "partition_max_bytes": 1 << 20}]}]})


def list_offset(label, isolation):
    return Case(f"ListOffsets: {label}", "ListOffsets", 5, {"replica_id": -1, "isolation_level": isolation, "topics": [
        {"name": "x", "partitions": [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}]}]})


def shown(label, name):
    return Case(f"DescribeTransactions: {label}", "DescribeTransactions", 0, {"transactional_ids": [name]})


BEGIN = [
    begin("a time-out of 0", "x", timeout=0), begin("a time-out that is too long", "x", timeout=1 << 30),
    begin("a negative time-out", "x", timeout=-1), begin("an empty id", ""),
    begin("no id, whatever the time-out", None, timeout=-1),
    begin("an id without epoch", "x", producer=5, epoch=-1), begin("an epoch without id", "x", producer=-1, epoch=5),
    begin("a producer that is not known", "x-other", producer=987654, epoch=0),
    begin("no id, of a producer that there was", None, producer=987654, epoch=3),
    begin("a transactional id", "x", save={"x-pid": "producer_id", "x-old": "producer_epoch"}),
    begin("again, in another instance", "x", save={"x-epoch": "producer_epoch"}),
    begin("the id and epoch of another", "x", producer=987654, epoch=0),
    begin("an epoch that is over", "x", producer=PID, epoch=saved("x-old")),
    begin("an epoch that is over, in version 3", "x", producer=PID, epoch=saved("x-old"), version=3),
    begin("an epoch to come", "x", producer=PID, epoch=77),
]
BEGIN = BEGIN + [begin("once more", "x", save={"x-epoch": "producer_epoch", "x-pid": "producer_id"})]
OLD = saved("x-old")
RUN = [
    shown("before anything", "x"),
    end("of nothing", True), end("of nothing, aborted", False),
    produce("a partition that was not added", 0),
    add("a partition"), add("the partition again"), add("an unknown topic", topic="no-such-topic"), add("an unknown partition", partition=9),
    add("an unknown id", name="x-no-such"), add("an empty id", name=""), add("another producer", producer=987654), add("an epoch that is over", epoch=OLD),
    add("an epoch that is over, in version 1", epoch=OLD, version=1), add("an epoch to come", epoch=77),
    add("an internal topic", topic="__consumer_offsets"), add("a name that can't be", topic="bad name"),
    produce("an added partition", 0), produce("an epoch that is over", 1, epoch="x-old"), produce("a gap", 9),
    produce("out of the transaction, within it", 1, attributes=0),
    fetch("an open transaction", 0), fetch("an open transaction, of read_committed", 1),
    list_offset("an open transaction", 0), list_offset("an open transaction, of read_committed", 1), shown("open", "x"),
    add_offsets("a group"), add_offsets("an empty group", group=""), add_offsets("an unknown id", name="x-no-such"), add_offsets("an empty id", name=""),
    add_offsets("another producer", producer=987654), add_offsets("an epoch that is over", epoch=OLD),
    commit("offsets"), commit("a group that was not added", group="x-else"), commit("an unknown topic", topic="no-such-topic"),
    commit("an unknown partition", partition=9), commit("an unknown member", member="nobody", generation=1),
    commit("a generation without member", generation=3), commit("an empty group", group=""), commit("metadata that is too large", metadata="x" * 5000),
    commit("an epoch that is over", epoch=OLD), commit("another producer", producer=987654),
    Case("OffsetFetch: stable ones, pending", "OffsetFetch", 8, {"require_stable": True, "groups": [
        {"group_id": "x-group", "topics": [{"name": "x", "partition_indexes": [0]}]}]}),
    Case("OffsetFetch: any, pending", "OffsetFetch", 8, {"groups": [
        {"group_id": "x-group", "topics": [{"name": "x", "partition_indexes": [0]}]}]}),
    end("an unknown id", name="x-no-such"), end("an empty id", name=""), end("another producer", producer=987654), end("an epoch that is over", epoch=OLD),
    end("an epoch that is over, in version 1", epoch=OLD, version=1), end("an epoch to come", epoch=77),
    end("a commit"), end("a commit again"), end("an abort of what is committed", False),
    fetch("a committed transaction, of read_committed", 1), list_offset("a committed transaction, of read_committed", 1),
    shown("committed", "x"), shown("an unknown id", "x-no-such"), shown("an empty id", ""),
    Case("OffsetFetch: stable ones, committed", "OffsetFetch", 8, {"require_stable": True, "groups": [
        {"group_id": "x-group", "topics": [{"name": "x", "partition_indexes": [0]}]}]}),
    add("a second transaction"), produce("to be aborted", 1), end("an abort", False), end("a commit of what is aborted", True),
    end("an abort again", False), fetch("an aborted transaction, of read_committed", 1, 2),
    # The protocol of transaction.version 2: the broker adds partitions, each end has a new epoch.
    begin("for version 2", "x-two", version=5, save={"y-pid": "producer_id", "y-epoch": "producer_epoch"}),
    end("of nothing, in version 5", False, name="x-two", producer=saved("y-pid"), epoch=saved("y-epoch"), version=5,
        save={"y-epoch": "producer_epoch"}),
    end("of nothing, in version 5, committed", True, name="x-two", producer=saved("y-pid"), epoch=saved("y-epoch"), version=5),
    Case("Produce in a transaction: version 12 adds the partition", "Produce", 12, {
        "transactional_id": "x-two", "acks": -1, "timeout_ms": 10000, "topic_data": [{"name": "x", "partition_data": [
            {"index": 1, "records": lambda kept: encode_batch([b"v"], producer=(kept["y-pid"], kept["y-epoch"], 0), attributes=16)}]}]}),
    shown("of version 2", "x-two"),
    end("in version 5", True, name="x-two", producer=saved("y-pid"), epoch=saved("y-epoch"), version=5, save={"y-next": "producer_epoch"}),
    end("in version 5 again", True, name="x-two", producer=saved("y-pid"), epoch=saved("y-epoch"), version=5),
    end("in version 5 again, otherwise", False, name="x-two", producer=saved("y-pid"), epoch=saved("y-epoch"), version=5),
    Case("ListTransactions: all", "ListTransactions", 1, {"duration_filter": -1}),
    Case("ListTransactions: a state that is not known", "ListTransactions", 1, {"state_filters": ["Odd"], "duration_filter": -1}),
    Case("ListTransactions: those that ended", "ListTransactions", 1, {"state_filters": ["CompleteAbort"], "duration_filter": -1}),
    Case("ListTransactions: a pattern that is none", "ListTransactions", 2, {"transactional_id_pattern": "(", "duration_filter": -1}),
    Case("DescribeProducers: of a partition", "DescribeProducers", 0, {"topics": [{"name": "x", "partition_indexes": [0]}]}),
    Case("DescribeProducers: of an unknown topic", "DescribeProducers", 0, {"topics": [{"name": "no-such-topic", "partition_indexes": [0]}]}),
    Case("DescribeProducers: of an unknown partition", "DescribeProducers", 0, {"topics": [{"name": "x", "partition_indexes": [9]}]}),
    Case("DescribeProducers: of a name that can't be", "DescribeProducers", 0, {"topics": [{"name": "bad name", "partition_indexes": [9]}]}),
]

CASES = BEGIN + RUN
