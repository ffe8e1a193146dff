"""Every command of README.md runs, in its order, against the demo it tells to start."""
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest

import namespaces
from group import ROOT, moonmq_binary, wait_for

PORTS = [base + shift for base in (9090, 9092, 9095) for shift in (0, 10, 20)]


def readme_blocks():
    text = (ROOT / "README.md").read_text()
    return re.findall(r"```sh\n(.*?)```", text, re.S)


@pytest.fixture
def own_network():
    """A namespace of its own, so that the demo's fixed ports are free; without root, the machine's."""
    if not namespaces.are_possible():
        for port in PORTS:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    pytest.skip(f"port {port} is in use")
        yield []
        return
    name = f"mq{os.getpid()}readme"
    subprocess.run(["ip", "netns", "add", name], check=True)
    launcher = ["ip", "netns", "exec", name]
    subprocess.run([*launcher, "ip", "link", "set", "lo", "up"], check=True)
    yield launcher
    subprocess.run(["ip", "netns", "del", name], check=False)


@pytest.fixture
def demo(own_network, tmp_path):
    """`moonmq demo` as scripts/demo runs it: its output, and how to run something beside it."""
    directory = tmp_path / "moonmq-demo"
    output = open(tmp_path / "demo.out", "wb+")
    process = subprocess.Popen([*own_network, str(moonmq_binary()), "demo", "--dir", str(directory)],
                               cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    yield own_network, directory, process, output
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.wait(30)
    output.close()


def run_beside(launcher, script, directory, timeout_s=300):
    script = script.replace("/tmp/moonmq-demo", str(directory))
    script = script.replace("$PWD/build/release", str(moonmq_binary().parent))
    # Who writes to a head that has gone fails, which counts under pipefail.
    script = re.sub(r"\| head -n (\d+)", r"| sed -n 1,\1p", script)
    # A writer that was quicker than the last kill leaves a group that elects.
    script = script.replace("wait\nmoonmq status\n", "wait\nuntil moonmq status; do sleep 0.1; done\n")
    done = subprocess.run([*launcher, "bash", "-euo", "pipefail", "-c", script], cwd=ROOT, text=True,
                          capture_output=True, timeout=timeout_s, check=False)
    assert done.returncode == 0, f"exit {done.returncode}\n{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def wait_until_served(launcher, directory):
    script = "export MOONMQ_BOOTSTRAP=127.0.0.1:9092,127.0.0.1:9102,127.0.0.1:9112\n" \
        f"{moonmq_binary()} status"

    def served():
        done = subprocess.run([*launcher, "bash", "-c", script], text=True, capture_output=True, check=False)
        return "3 in sync of 3" in done.stdout

    wait_for(served, f"the demo in {directory} serves")


def test_every_command_of_the_readme_works(demo):
    launcher, directory, _, _ = demo
    wait_until_served(launcher, directory)
    blocks = readme_blocks()
    assert len(blocks) >= 4
    if shutil.which("curl") is None:
        blocks = [re.sub(r"^curl .*$", "", block, flags=re.M) for block in blocks]
    output = run_beside(launcher, "\n".join(blocks), directory)
    assert "100000" in output.splitlines() and "998\n999\n1000" in output
    assert "5000000" in output.splitlines(), output


def test_the_demo_prints_commands_that_work(demo):
    launcher, directory, _, output = demo
    wait_until_served(launcher, directory)
    output.seek(0)
    lines = [line[2:] for line in output.read().decode().splitlines() if line.startswith("  ")]
    assert any("topic create" in line for line in lines) and any("kill -9" in line for line in lines)
    assert "100000" in run_beside(launcher, "\n".join(lines), directory)


def test_the_demo_brings_back_who_was_killed_and_stops_at_once(demo):
    launcher, directory, process, output = demo
    wait_until_served(launcher, directory)
    run_beside(launcher, f"kill -9 $(cat {directory}/replica-2.pid)", directory)
    wait_for(lambda: (output.seek(0), b"started again: pid" in output.read())[1], "replica 2 is started again")
    wait_until_served(launcher, directory)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0


def test_the_readme_has_two_ways_to_set_up():
    text = (ROOT / "README.md").read_text()
    setup = text[text.index("## Set up"):text.index("## Try it")]
    assert re.findall(r"`(scripts/\w+)`", setup) == ["scripts/demo", "scripts/test"]
    for script in ("scripts/demo", "scripts/test", ".ci/run"):
        assert os.access(ROOT / script, os.X_OK), script


def test_links_of_the_pages_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "src").rglob("README.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"
        for target in re.findall(r"`((?:docs|src|tools|scripts|tests|sim|include)/[\w./-]+\w)`", page.read_text()):
            assert (ROOT / target).exists(), f"{page.relative_to(ROOT)}: {target}"
