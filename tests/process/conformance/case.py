"""case.py: one request of the conformance test, and how its answer is made comparable.

A Case is data: a label that is unique, an API, a version and the request's fields. What an earlier answer of
the same broker gave (a member id, a producer id) is put in by `saved`: any value may be a function of the
dictionary that the cases' `save` filled.
"""
import functools
from pathlib import Path

UNKNOWN, ABSENT = "UNKNOWN", "absent"


class Case:
    def __init__(self, label, api, version, values=None, save=None):
        """`save` names what to keep of the answer: {"member": "member_id", "id": "topics.0.topic_id"}."""
        self.label, self.api, self.version, self.values, self.save = label, api, version, values or {}, save or {}


def saved(name, otherwise=None):
    return lambda kept: kept.get(name, otherwise)


def filled_in(value, kept):
    if callable(value):
        return filled_in(value(kept), kept)
    if isinstance(value, dict):
        return {key: filled_in(inner, kept) for key, inner in value.items()}
    if isinstance(value, list):
        return [filled_in(inner, kept) for inner in value]
    return value


def found(answer, path):
    """What lies at "topics.0.topic_id"; None if the answer has not that much."""
    for step in path.split("."):
        try:
            answer = answer[int(step) if step.isdigit() else step]
        except (IndexError, KeyError, TypeError):
            return None
    return answer


# ---- names ----

@functools.lru_cache(maxsize=1)
def error_names():
    lines = (Path(__file__).parent / "errors.txt").read_text(encoding="utf-8").split("\n")
    pairs = (line.split() for line in lines if line and line[0] != "#")
    return {int(code): name for code, name in pairs}


def error_name(code):
    return error_names().get(code, f"{UNKNOWN} {code}")


# ---- what two brokers may answer differently, always ----

# Text for people, who somebody is, and what depends on time or on what else the broker did.
LEFT_OUT = {"throttle_time_ms", "error_message", "batch_index_error_message", "host", "port", "rack", "cluster_id",
            "node_endpoints", "current_leader", "client_host", "last_timestamp", "coordinator_epoch", "heartbeat_interval_ms",
            "transaction_start_time_ms", "push_interval_ms", "subscription_id", "log_dir", "total_bytes",
            "usable_bytes", "telemetry_max_bytes",
            "authorized_operations", "topic_authorized_operations", "cluster_authorized_operations"}
# With an error nobody reads these.
OF_SUCCESS = {"log_start_offset", "aborted_transactions", "configs"}
# Whether there is one is compared, not which.
SOME = {"topic_id", "member_id", "leader", "producer_id", "session_id", "client_instance_id", "leader_epoch",
        "client_id", "group_epoch", "committed_leader_epoch", "epoch", "controller_id", "ongoing_txn_producer_id",
        "log_append_time_ms", "member_epoch", "assignment_epoch"}
FROM_ZERO = {"leader_epoch", "epoch", "producer_id"}
NOTHING = {"", -1, 0, None, bytes(16)}
IDENTITY = ("name", "topic", "group_id", "transactional_id", "key", "resource_name", "feature", "user", "partition_index",
            "partition", "index", "partition_id", "member_id", "error_code")


def is_error(name):
    return name == "error_code" or name.endswith("_error_code")


def comparable(value, name=""):
    if isinstance(value, dict):
        left_out = LEFT_OUT | OF_SUCCESS if value.get("error_code") else LEFT_OUT
        if "topic_config_error_code" in value:
            left_out = left_out | {"configs"}  # of CreateTopics: what DescribeConfigs shows, too
        return {key: comparable(inner, key) for key, inner in value.items() if key not in left_out}
    if isinstance(value, list):
        return sorted((comparable(inner, name) for inner in value), key=_order)
    if is_error(name):
        return error_name(value)
    if name in SOME:
        nothing = NOTHING - {0} if name in FROM_ZERO else NOTHING
        return "none" if value in nothing else "some"
    if name == "records":
        return "some" if value else "none"
    return value


def _identity(value):
    return [value[key] for key in IDENTITY if key in value] if isinstance(value, dict) else []


def _order(value):
    return [repr(part) for part in _identity(value)] + [repr(value)]


def _by_identity(values):
    """A list as a dictionary: items by their first identity (a second one of the same: name#2), else by place."""
    result = {}
    for i, value in enumerate(values):
        name = str((_identity(value) or [i])[0])
        count = sum(key.partition("#")[0] == name for key in result)
        result[f"{name}#{count + 1}" if count else name] = value
    return result


def _shown(value):
    """A leaf as it is; of anything larger its error, or that it is there."""
    if isinstance(value, dict):
        return next((inner for key, inner in value.items() if is_error(key)), "there")
    return ("there" if value else "nothing") if isinstance(value, list) else value


def _compare(kafka, ours, path):
    if isinstance(kafka, list) and isinstance(ours, list):
        kafka, ours = _by_identity(kafka), _by_identity(ours)
    if not isinstance(kafka, dict) or not isinstance(ours, dict):
        return [] if kafka == ours else [f"{path}: {_shown(kafka)} | {_shown(ours)}"]
    keys = sorted(kafka.keys() | ours.keys())
    errors = [key for key in keys if is_error(key) and kafka.get(key) != ours.get(key)]
    lines = []
    for key in errors or keys:  # the rest follows from another error
        lines += _compare(kafka.get(key, ABSENT), ours.get(key, ABSENT), f"{path}.{key}" if path else key)
    return lines


def difference(kafka, ours):
    """Lines "path: of Kafka | ours" of what is not the same."""
    return _compare(comparable(kafka), comparable(ours), "")


# ---- answers for now ----

PASSES = {"COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "CONCURRENT_TRANSACTIONS",
          "LEADER_NOT_AVAILABLE", "NOT_LEADER_OR_FOLLOWER"}


def passes(answer):
    """It says "not now": every client asks again."""
    return bool(PASSES & set(_errors(answer)))


def _errors(value):
    if isinstance(value, list):
        return [error for inner in value for error in _errors(inner)]
    if not isinstance(value, dict):
        return []
    own = [error_name(code) for key, code in value.items() if is_error(key)]
    return own + [error for inner in value.values() for error in _errors(inner)]
