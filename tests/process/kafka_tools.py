"""kafka_tools.py: Kafka's own command-line tools (tests/peer), run in one JVM, and what they print, read.

The tools are those of bin/kafka-*.sh: TOOLS has the class that each script starts.
"""
import collections
import fcntl
import json
import os
import queue
import subprocess
import threading

import apache_kafka
import pytest

PATIENCE_S = 120

TOOLS = {
    "acls": "org.apache.kafka.tools.AclCommand",
    "broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "client-metrics": "org.apache.kafka.tools.ClientMetricsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "features": "org.apache.kafka.tools.FeatureCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "groups": "org.apache.kafka.tools.GroupsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
}

Done = collections.namedtuple("Done", "exit out err")


class Tools:
    """One JVM that runs tools, one after the other, against the brokers named to begin()."""

    def __init__(self, directory):
        if os.environ.get("MOONMQ_WITHOUT_JAVA"):
            pytest.skip("MOONMQ_WITHOUT_JAVA is set: no JDK is wanted here")
        self.directory, self.bootstrap, self.ran = directory, None, collections.defaultdict(set)
        self.log_path = directory / "tools.log"
        classpath = f"{apache_kafka.ROOT}/build/peer/classes:{apache_kafka.classpath()}"
        self.java = ["java", "-Xmx256m", *apache_kafka.JVM, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classpath]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen([*self.java, "ToolRunner"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=log, text=True, cwd=directory)
        self.answers = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def begin(self, bootstrap):
        """From here on these brokers; `ran` begins anew: {tool: what it was asked for}."""
        self.bootstrap, self.ran = bootstrap, collections.defaultdict(set)

    def _read(self):
        for line in self.process.stdout:
            self.answers.put(json.loads(line))
        self.answers.put(None)

    def run(self, tool, *arguments, stdin="", check=True, bootstrap=True, patience_s=PATIENCE_S):
        """What `bin/kafka-TOOL.sh ARGUMENTS` does: a Done. `check`: it must not fail. The tool is told the
        brokers unless `bootstrap` is None.

        Not for tools that end their process by other means than Kafka's own Exit (wrong options of those that read
        them with argparse4j, and verifiable-producer): see run_alone."""
        self._note(tool, arguments)
        if bootstrap:
            arguments = ("--bootstrap-server", self.bootstrap, *arguments)
        command = {"main": TOOLS[tool], "arguments": [str(each) for each in arguments], "stdin": stdin}
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        try:
            answer = self.answers.get(timeout=patience_s)
        except queue.Empty:
            self.process.kill()
            raise AssertionError(f"kafka-{tool} {arguments} did not end within {patience_s} s") from None
        assert answer is not None, f"the JVM ended in kafka-{tool}: {self.log_path.read_text()}"
        done = Done(**answer)
        if check:
            assert done.exit == 0, f"kafka-{tool} {arguments}: {done}"
        return done

    def run_alone(self, tool, *arguments, patience_s=PATIENCE_S):
        """The same in a JVM of its own."""
        self._note(tool, arguments)
        done = subprocess.run([*self.java, TOOLS[tool], "--bootstrap-server", self.bootstrap, *map(str, arguments)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patience_s, check=False)
        assert done.returncode == 0, f"kafka-{tool} {arguments}: {done}"
        return Done(done.returncode, done.stdout, done.stderr)

    def _note(self, tool, arguments):
        """Its subcommand and its options, without their values."""
        first = [each for each in arguments[:1] if not str(each).startswith("-")]
        options = [each for each in arguments if str(each).startswith("--")]
        self.ran[tool].add(" ".join([*first, *dict.fromkeys(options)]))

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def note_results(test, ran):
    """Into build/tools/results.json: {"version": of the tools, "tools": {tool: {test: [what was asked for]}}}."""
    path = apache_kafka.ROOT / "build/tools/results.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if results.get("version") != apache_kafka.version():
            results = {"version": apache_kafka.version(), "tools": {}}
        for tool, asked in ran.items():
            results["tools"].setdefault(tool, {})[test] = sorted(asked)
        path.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def rows(text):
    """A table with a head line, as consumer-groups and others print it: a dict a row. Cells hold no blanks."""
    found, head = [], None
    for line in text.splitlines():
        cells = line.split()
        if not cells:
            head = None
        elif head is None:
            head = cells
        else:
            found.append(dict(zip(head, cells)))
    return found


def fields(line):
    """Name and value, separated by tabs: `Topic: t	PartitionCount: 3`."""
    return {name.strip(): value.strip() for name, _, value in (part.partition(":") for part in line.split("\t"))}
