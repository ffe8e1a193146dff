"""The same requests to Apache Kafka and to us: errors by name and all that depends on neither identity nor time.

The cases are data (tests/process/conformance/); what is answered differently is listed in differences.py, line by
line with its reason, and in docs/kafka-compatibility.md. A difference that is not listed fails, and so does
one that is listed and is gone.
"""
import os
import time

import pytest

import kafka_shapes as shapes
from apache_kafka import ApacheKafka
from conformance import cluster, groups, records, topics, transactions
from conformance.case import difference, filled_in, found, passes
from conformance.differences import ACCEPTED, Accepted
from group import PORT_SOURCE, ROOT, Group
from kafka_wire import Connection

# One Apache Kafka is enough.
pytestmark = pytest.mark.xdist_group("conformance")

AREAS = [records, topics, groups, transactions, cluster]
PATIENCE_S = 60
CLOSED = {"connection": "closed"}
INTERNAL = {"offsets.topic.num.partitions": 16, "transaction.state.log.num.partitions": 16}  # as ours


class Side:
    """One of the two brokers, the connection to it, and what its answers gave."""

    def __init__(self, host, client_port):
        self.host, self.client_port, self.kept, self.connection = host, client_port, {}, None

    def ask(self, case):
        """The answer, asked for again while it says "not now"; CLOSED if the broker hangs up."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self._ask_once(case)
            if not passes(answer) or time.monotonic() > deadline:
                break
            time.sleep(0.02)
        for name, path in case.save.items():
            self.kept[name] = found(answer, path)
        return answer

    def _ask_once(self, case):
        if self.connection is None:
            self.connection = Connection(self, PATIENCE_S)
        try:
            return shapes.ask(self.connection, case.api, case.version, filled_in(case.values, self.kept))
        except ConnectionError:
            self.connection.socket.close()
            self.connection = None
            return CLOSED

    def prepare(self, topics):
        """All topics, and the coordinators, which Apache Kafka makes when they are asked for."""
        asked = []
        for name, config in topics.items():
            config = dict(config)
            asked.append({"name": name, "num_partitions": config.pop("partitions", 1), "replication_factor": 1,
                          "configs": [{"name": key, "value": value} for key, value in config.items()]})
        with Connection(self, PATIENCE_S) as connection:
            made = shapes.ask(connection, "CreateTopics", 7, {"timeout_ms": 30000, "topics": asked})
            assert {t["error_code"] for t in made["topics"]} == {0}, made
            self._wait(connection, "FindCoordinator", 4, {"key_type": 0, "coordinator_keys": ["any"]},
                       lambda answer: answer["coordinators"][0]["error_code"] == 0)
            self._wait(connection, "FindCoordinator", 4, {"key_type": 1, "coordinator_keys": ["any"]},
                       lambda answer: answer["coordinators"][0]["error_code"] == 0)
            self._wait(connection, "Metadata", 9, {"topics": [{"name": name} for name in topics]}, lambda answer: all(
                t["error_code"] == 0 and all(p["leader_id"] >= 0 for p in t["partitions"]) for t in answer["topics"]))

    @staticmethod
    def _wait(connection, api, version, values, condition):
        deadline = time.monotonic() + PATIENCE_S
        while not condition(answer := shapes.ask(connection, api, version, values)):
            assert time.monotonic() < deadline, answer
            time.sleep(0.05)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory):
    """Apache Kafka and us, with equal settings; (side of Kafka, our side)."""
    if os.environ.get("MOONMQ_WITHOUT_JAVA"):
        pytest.skip("MOONMQ_WITHOUT_JAVA is set: no JDK is wanted here")
    directory = tmp_path_factory.mktemp("conformance")
    ours = Group(directory / "ours", 1, server={"Kafka": {"auto.create.topics.enable": False}})
    kafka = ApacheKafka(directory / "kafka", {"auto.create.topics.enable": "false", **INTERNAL}, ports=PORT_SOURCE.take)
    try:
        ours.start()
        kafka.start()
        sides = Side(kafka.host, kafka.port), Side(ours.brokers[0].host, ours.brokers[0].client_port)
        for side in sides:
            # Records are of 2023; Apache Kafka looks for old ones after 30 s.
            side.prepare({name: {"retention.ms": "-1", **config} for area in AREAS for name, config in area.TOPICS.items()})
        yield sides
        assert ours.brokers[0].is_running(), ours.brokers[0].log_tail()
    finally:
        kafka.stop()
        ours.clean_up()


@pytest.mark.parametrize("area", AREAS, ids=lambda area: area.__name__.rpartition(".")[2])
def test_apache_kafka_and_we_answer_alike_but_for_what_is_listed(brokers, area):
    kafka, ours = brokers
    wrong = []
    for case in area.CASES:
        lines = difference(kafka.ask(case), ours.ask(case))
        listed = ACCEPTED.get(case.label, Accepted("", []))
        wrong += [f"{case.label}: {line}" for line in lines if line not in listed.lines]
        wrong += [f"{case.label}: listed, and not so: {line}" for line in listed.lines if line not in lines]
    assert not wrong, "Kafka | ours\n" + "\n".join(wrong)


def test_each_label_is_there_once_and_each_listed_difference_is_of_a_case():
    labels = [case.label for area in AREAS for case in area.CASES]
    assert sorted(set(labels)) == sorted(labels)
    assert set(ACCEPTED) <= set(labels)
    assert len(labels) > 500


def test_the_page_on_compatibility_has_each_reason():
    page = " ".join((ROOT / "docs/kafka-compatibility.md").read_text(encoding="utf-8").split())
    missing = [accepted.why for accepted in ACCEPTED.values() if accepted.why not in page]
    assert not missing, missing
