"""group.py: brokers as processes: configured, started, hurt, watched, and cleaned up.

A Group is one replication group on this machine (or one broker without replication); a Broker is one
process and its directory. Nothing here sleeps a fixed time: everything waits for a condition, with
limits generous enough for a slow machine. Processes are ended by their pid only.
"""
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE_S = 60
POLL_S = 0.02
# Below the range the kernel takes for outgoing connections, so that the port of a broker that is down
# for a moment is not lost to one.
PORTS = (20000, 32000)


def moonmq_binary():
    return Path(os.environ.get("MOONMQ_BIN") or ROOT / "build/release/moonmq").resolve()


def dev_binary():
    """With failpoints and sanitizers."""
    return Path(os.environ.get("MOONMQ_DEV_BIN") or ROOT / "build/dev/moonmq").resolve()


def wait_for(condition, what, patience_s=PATIENCE_S):
    """The first true value of condition(). Fails with `what` (text, or a function that tells)."""
    deadline = time.monotonic() + patience_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {patience_s} s: {what() if callable(what) else what}")
        time.sleep(POLL_S)


def wait_reached(goal, now, what, patience_s=90):
    """Until now() is `goal`. Fails when it stands still for so long, or moves for ten times that: a busy machine
    may be slow."""
    last, deadline, end = None, 0, time.monotonic() + 10 * patience_s
    while (value := now()) != goal:
        if value != last:
            last, deadline = value, time.monotonic() + patience_s
        if time.monotonic() > min(deadline, end):
            raise AssertionError(f"{value} for {patience_s} s, not {goal}: {what()}")
        time.sleep(POLL_S * 5)


def own_ports():
    """The ports of this process: pytest-xdist's workers share them out."""
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    each = (PORTS[1] - PORTS[0]) // count
    return PORTS[0] + number * each, PORTS[0] + (number + 1) * each


class Ports:
    """Ports that are free now and that no other test of this run was given."""

    def __init__(self):
        self.first, self.end = own_ports()
        self.next = random.Random(os.getpid()).randrange(self.first, self.end)

    def take(self):
        for _ in range(self.end - self.first):
            port = self.next
            self.next = port + 1 if port + 1 < self.end else self.first
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("0.0.0.0", port))
                except OSError:
                    continue
                return port
        raise RuntimeError("no free port")


PORT_SOURCE = Ports()


class HttpAnswer:
    def __init__(self, status, body, headers):
        self.status, self.body, self.headers = status, body, headers

    def json(self):
        return json.loads(self.body)


def http_request(host, port, method, path, body=None, headers=None, timeout_s=5):
    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return HttpAnswer(answer.status, answer.read(), dict(answer.getheaders()))
    finally:
        connection.close()


class Broker:
    """One broker: its directory, its ports, and at most one process."""

    def __init__(self, directory, broker_id, host="127.0.0.1", launcher=(), environment=None, binary=None):
        self.id = broker_id
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.data_dir = self.directory / "data"
        self.config_path = self.directory / "appsettings.json"
        self.log_path = self.directory / "broker.log"
        self.host = host
        self.client_port = PORT_SOURCE.take()
        self.replicate_port = PORT_SOURCE.take()
        self.metrics_port = PORT_SOURCE.take()
        self.advertised_port = self.client_port  # a relay's, where one stands in front
        self.launcher = list(launcher)
        self.binary = binary or moonmq_binary()
        self.environment = environment or {}
        self.token = None
        self.process = None
        self.ended_by_us = False
        self.crashes = []

    def __repr__(self):
        return f"<broker {self.id}>"

    @property
    def client_address(self):
        return f"{self.host}:{self.advertised_port}"

    @property
    def replicate_address(self):
        return f"{self.host}:{self.replicate_port}"

    # ---- life ----

    def write_config(self, config):
        self.config_path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")

    def start(self, environment=None):
        assert not self.is_running(), f"{self} runs already"
        self._note_exit()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.launcher + [str(self.binary), "serve", "--config", str(self.config_path)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory,
                env={**os.environ, **self.environment, **(environment or {})},
            )
        self.ended_by_us = False
        return self

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def _note_exit(self):
        """Remembers an end that no test asked for."""
        if self.process is not None and self.process.poll() is not None and not self.ended_by_us:
            self.crashes.append(self.process.returncode)
            self.ended_by_us = True

    def kill(self):
        """As a power cut of the process: nothing is flushed or said."""
        self._end(signal.SIGKILL)

    def terminate(self, patience_s=PATIENCE_S):
        """Asks it to stop and waits; the exit code."""
        self.send_terminate()
        return self.wait_exit(patience_s)

    def send_terminate(self):
        self.ended_by_us = True
        self.process.send_signal(signal.SIGTERM)

    def wait_exit(self, patience_s=PATIENCE_S):
        try:
            return self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self} did not stop within {patience_s} s") from None

    def expect_exit(self, patience_s=PATIENCE_S):
        """Waits for an end that the test wants: a refused config, a failpoint. The exit code."""
        self.ended_by_us = True
        return self.wait_exit(patience_s)

    def _end(self, number):
        if self.is_running():
            self.ended_by_us = True
            self.process.send_signal(number)
            self.process.wait(PATIENCE_S)
        self._note_exit()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    # ---- looking ----

    def http(self, path, timeout_s=30, **arguments):
        return http_request(self.host, self.metrics_port, "GET", path, timeout_s=timeout_s, **arguments)

    def _status_of(self, path):
        try:
            return self.http(path, timeout_s=2).status
        except OSError:
            return None

    def is_alive(self):
        return self._status_of("/healthz") == 200

    def is_ready(self):
        return self._status_of("/readyz") == 200

    def status(self, timeout_s=2, query=""):
        """/replication/status, or None if the broker does not answer."""
        headers = {"X-Cluster-Token": self.token} if self.token else {}
        try:
            answer = http_request(self.host, self.replicate_port, "GET",
                                  "/replication/status" + query, headers=headers, timeout_s=timeout_s)
        except (OSError, http.client.HTTPException):
            return None
        return answer.json() if answer.status == 200 else None

    def sure_status(self):
        """/replication/status of one that runs, however busy the machine is."""
        return wait_for(self.status, f"{self} tells its status")

    def resident_kib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))

    def metrics(self):
        """Samples of /metrics by name with labels: {'moonmq_x{a="b"}': 1.0}."""
        samples = {}
        for line in self.http("/metrics").body.decode().splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                samples[name] = float(value)
        return samples

    def wait_alive(self):
        wait_for(self._alive_or_dead, f"{self} answers /healthz")
        return self

    def _alive_or_dead(self):
        assert self.is_running(), f"{self} ended with {self.process.returncode}:\n{self.log_tail()}"
        return self.is_alive()

    def wait_ready(self, patience_s=PATIENCE_S):
        wait_for(self.is_ready, lambda: f"{self} is ready: {self._readiness()}", patience_s)
        return self

    def _readiness(self):
        try:
            return self.http("/readyz").body.decode(errors="replace")
        except OSError as why:
            return f"no answer ({why})\n{self.log_tail()}"

    def log_tail(self, lines=60):
        if not self.log_path.exists():
            return ""
        text = self.log_path.read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def log_contains(self, text):
        return self.log_path.exists() and text in self.log_path.read_text(errors="replace")

    def clean_up(self):
        if self.is_running():
            self.ended_by_us = True
            self.process.kill()
            self.process.wait()
        self._note_exit()


def merge(into, other):
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value
    return into


class Group:
    """A group of brokers with equal settings.

    size       1: without a Replication block; else that many replicas.
    server     merged into each broker's Server section; failover into its Failover block.
    """

    def __init__(self, directory, size=3, server=None, failover=None, top=None, token="secret-of-tests",
                 hosts=None, launchers=None, environment=None, binary=None):
        self.directory = Path(directory)
        self.server, self.failover, self.top = server or {}, failover or {}, top or {}
        self.token = token if size > 1 else None
        self.brokers = []
        for i in range(size):
            broker = Broker(self.directory / f"broker{i + 1}", i + 1,
                            host=hosts[i] if hosts else "127.0.0.1",
                            launcher=launchers[i] if launchers else (), environment=environment, binary=binary)
            broker.token = self.token
            self.brokers.append(broker)
        self.write_configs()

    def config_of(self, broker):
        server = {
            "Host": broker.host, "Port": broker.client_port, "DataDir": str(broker.data_dir),
            "MetricsHost": broker.host, "MetricsPort": broker.metrics_port,
        }
        if len(self.brokers) > 1:
            server["Replication"] = {
                "Enabled": True, "ReplicaId": broker.id, "Role": "both",
                "ReplicateHost": broker.host, "ReplicatePort": broker.replicate_port,
                "ClientAddress": broker.client_address,
                "Peers": [
                    {"Id": peer.id, "Address": peer.replicate_address, "ClientAddress": peer.client_address}
                    for peer in self.brokers if peer is not broker
                ],
                "Failover": {"Enabled": True, **self.failover},
            }
            if self.token:
                server["Replication"]["Token"] = self.token
        return merge({"Server": merge(server, self.server)}, self.top)

    def write_configs(self):
        for broker in self.brokers:
            broker.write_config(self.config_of(broker))

    # ---- life ----

    def start(self, environment=None):
        for broker in self.brokers:
            if not broker.is_running():
                broker.start(environment)
        for broker in self.brokers:
            broker.wait_alive()
        if len(self.brokers) == 1:
            self.brokers[0].wait_ready()
        else:
            self.wait_all_in_sync()
        return self

    def broker(self, broker_id):
        return next(b for b in self.brokers if b.id == broker_id)

    def running(self):
        return [b for b in self.brokers if b.is_running()]

    def others(self, *brokers):
        return [b for b in self.brokers if b not in brokers]

    @property
    def bootstrap(self):
        return ",".join(b.client_address for b in self.brokers)

    # ---- looking ----

    def leader_now(self, among=None):
        """The broker that serves as leader with the highest epoch, or None."""
        if len(self.brokers) == 1:
            return self.brokers[0] if self.brokers[0].is_ready() else None
        best, best_epoch = None, -1
        for broker in among or self.brokers:
            status = broker.status(timeout_s=0.5) if broker.is_running() else None
            if status and status["serving"] and status["epoch"] > best_epoch:
                best, best_epoch = broker, status["epoch"]
        return best

    def wait_leader(self, among=None, other_than=None, patience_s=PATIENCE_S):
        def condition():
            leader = self.leader_now(among)
            return leader if leader is not other_than else None
        return wait_for(condition, lambda: f"a leader serves\n{self.describe()}", patience_s)

    def wait_in_sync(self, count, patience_s=PATIENCE_S):
        """Waits until the leader counts `count` replicas in sync, and they say so themselves; the leader.

        A leader counts a replica that was killed until it notices. One that was started again is ready only when
        it fetches, and then the leader knows that it is another process, or even another incarnation: what the
        leader says afterwards is not from before.
        """
        def counted(status):
            return status is not None and len(status["isr"]) == count and status["in_sync_now"] == count

        def condition():
            leader = self.leader_now()
            status = leader and leader.status()
            if not counted(status):
                return None
            in_sync = [self.broker(broker_id) for broker_id in status["isr"]]
            if not all(b.is_running() and b.is_ready() for b in in_sync):
                return None
            again = leader.status()
            same = counted(again) and (again["epoch"], again["isr"]) == (status["epoch"], status["isr"])
            learners = again and [f["id"] for f in again["followers"] if f["learner"]]
            return leader if same and not set(learners) & set(again["isr"]) else None
        return wait_for(condition, lambda: f"{count} replicas in sync\n{self.describe()}", patience_s)

    def wait_all_in_sync(self, patience_s=PATIENCE_S):
        return self.wait_in_sync(len(self.brokers), patience_s)

    def follower(self):
        """A running follower of the current leader."""
        leader = self.wait_leader()
        return next(b for b in self.running() if b is not leader)

    def describe(self):
        lines = []
        for broker in self.brokers:
            lines.append(f"{broker}: {json.dumps(broker.status()) if broker.is_running() else 'down'}")
        return "\n".join(lines)

    # ---- the end ----

    def clean_up(self):
        for broker in self.brokers:
            broker.clean_up()

    def crashes(self):
        return {b.id: b.crashes for b in self.brokers if b.crashes}
