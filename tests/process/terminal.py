"""terminal.py: a program on a pseudo-terminal."""
import os
import pty
import select
import subprocess
import time


class Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, command, environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, environment)
        self.text = ""

    def type(self, text):
        self.text = ""
        os.write(self.fd, text.encode())

    def wait_for(self, text, patience_s=30):
        deadline = time.monotonic() + patience_s
        while text not in self.text:
            assert time.monotonic() < deadline, f"no {text!r} in {self.text!r}"
            if select.select([self.fd], [], [], 0.1)[0]:
                self.text += os.read(self.fd, 65536).decode(errors="replace")

    def close(self):
        os.close(self.fd)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


def run_on_terminal(arguments, streams=("stdout", "stderr"), **settings):
    """Runs it with these streams on a terminal of 200 columns, the others in pipes.

    (exit code, what the terminal was written, what the pipes were)
    """
    ours, theirs = pty.openpty()
    ends = {name: theirs if name in streams else subprocess.PIPE for name in ("stdout", "stderr")}
    process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, **ends,
                               env={**os.environ, "TERM": "xterm", "NO_COLOR": "", **settings})
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # nobody has the other end any more
            break
        if not data:
            break
        shown += data
    os.close(ours)
    piped = (process.stdout or process.stderr).read() if len(streams) == 1 else b""
    return process.wait(60), shown.decode().replace("\r\n", "\n"), piped.decode()
