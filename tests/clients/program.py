"""program.py: one running verb of a client: its lines, its end."""
import json
import subprocess
import threading
import time

from group import wait_for

PATIENCE_S = 60


class Failed(Exception):
    """A client did not do what its cell demands."""


class Program:
    def __init__(self, client, log_path, verb, arguments, lines=None):
        self.name, self.log_path = f"{client.key} {verb}", log_path
        self.events = []
        self.times = []  # of the events, on the monotonic clock
        with open(log_path, "ab") as log:
            self.process = subprocess.Popen([*client.command, verb, json.dumps(arguments)], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log, cwd=log_path.parent)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        if lines is not None:
            self._write(lines)
            self.end_input()

    def _write(self, lines):
        try:
            for line in lines:
                self.process.stdin.write(json.dumps(line).encode() + b"\n")
        except OSError:
            pass  # it died, and wait_end() says so

    def end_input(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass

    def _read(self):
        for line in self.process.stdout:
            now = time.monotonic()
            try:
                event = json.loads(line)
            except ValueError:
                event = {"event": "noise", "line": line.decode(errors="replace")[:200]}
            self.times.append(now)
            self.events.append(event)

    def all(self, name):
        return [event for event in list(self.events) if event["event"] == name]

    def one(self, name, index=0):
        found = self.all(name)
        if len(found) <= index:
            raise Failed(f"{self.name}: no \"{name}\"{self.tail()}")
        return found[index]

    def wait(self, condition, what, patience_s=PATIENCE_S):
        def look():
            value = condition()
            if not value and self.process.poll() is not None and not self.reader.is_alive():
                raise Failed(f"{self.name} ended with {self.process.returncode}, not yet: {what}{self.tail()}")
            return value
        try:
            return wait_for(look, what, patience_s)
        except AssertionError:
            raise Failed(f"{self.name}: not within {patience_s} s: {what}{self.tail()}") from None

    def wait_end(self, patience_s=PATIENCE_S):
        try:
            code = self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed(f"{self.name} did not end within {patience_s} s{self.tail()}") from None
        self.reader.join(10)
        if code != 0 or not self.all("done"):
            raise Failed(f"{self.name} ended with {code}{self.tail()}")
        return self

    def stop(self):
        self.end_input()
        return self.wait_end()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def tail(self):
        counts = {}
        for event in list(self.events):
            counts[event["event"]] = counts.get(event["event"], 0) + 1
        log = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-6:]
        return "\n    " + "\n    ".join([f"events: {counts}", *(line[:300] for line in log)])
