"""conftest.py: fixtures of the process tests.

`new_group` makes groups that are cleaned up after the test; `standing_group` lends one that the tests of a
module use one after the other, as long as they pass. A broker that ended without being asked to fails the
test; after a failure the tails of all logs are printed, and the directories are kept under
build/failed-process-tests/.
"""
import shutil
import subprocess
import sys

import pytest

import namespaces
from group import Group, ROOT, moonmq_binary

sys.path.insert(0, str(ROOT / "tests/peer"))  # apache_kafka
KEEP = ROOT / "build/failed-process-tests"


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes more than a minute")
    # A writer that died in its thread is not a reader that stands still.
    config.addinivalue_line("filterwarnings", "error::pytest.PytestUnhandledThreadExceptionWarning")
    if not moonmq_binary().exists():
        raise pytest.UsageError(f"{moonmq_binary()} is not there: build it, or name it with MOONMQ_BIN")


def pytest_collection_modifyitems(items):
    """The long ones first: what begins last should not be what ends last by much."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        item.failed_in_process_test = True


def _keep(request, directory, groups):
    target = KEEP / request.node.name.replace("/", "_").replace("[", "-").replace("]", "")
    shutil.rmtree(target, ignore_errors=True)
    for group in groups:
        for broker in group.brokers:
            print(f"\n---- {broker}: the end of {broker.log_path.name} ----\n{broker.log_tail()}",
                  file=sys.stderr)
    shutil.copytree(directory, target, symlinks=True, ignore_dangling_symlinks=True)
    print(f"\nkept: {target.relative_to(ROOT)}", file=sys.stderr)


@pytest.fixture
def new_group(request, tmp_path):
    groups = []

    def make(size=3, **arguments):
        group = Group(tmp_path / f"group{len(groups) + 1}", size, **arguments)
        groups.append(group)
        return group

    yield make
    for group in groups:
        for broker in group.brokers:
            broker._note_exit()  # before cleaning up ends what still runs
    for group in groups:
        group.clean_up()
    crashes = {i + 1: group.crashes() for i, group in enumerate(groups) if group.crashes()}
    if crashes or getattr(request.node, "failed_in_process_test", False):
        _keep(request, tmp_path, groups)
    shutil.rmtree(tmp_path, ignore_errors=True)
    assert not crashes, f"brokers ended by themselves (exit codes): {crashes}"


class Standing:
    """A group for many tests, which each leave it with all replicas in sync."""

    def __init__(self, directory):
        self.directory, self.made, self.group = directory, 0, None

    def get(self, size, **arguments):
        if self.group is None:
            self.made += 1
            self.group = Group(self.directory / f"standing{self.made}", size, **arguments).start()
        return self.group

    def take_away(self):
        if self.group is None:
            return
        self.group.clean_up()
        shutil.rmtree(self.group.directory, ignore_errors=True)
        self.group = None


@pytest.fixture(scope="module")
def _standing(tmp_path_factory):
    standing = Standing(tmp_path_factory.mktemp("standing"))
    yield standing
    standing.take_away()


@pytest.fixture
def standing_group(request, _standing):
    """get(size, …): the module's group. What a test does to it, it mends."""
    yield _standing.get
    group = _standing.group
    if group is None:
        return
    for broker in group.brokers:
        broker._note_exit()
    crashes = group.crashes()
    if crashes or getattr(request.node, "failed_in_process_test", False):
        group.clean_up()
        _keep(request, group.directory, [group])
        _standing.take_away()
    assert not crashes, f"brokers ended by themselves (exit codes): {crashes}"


@pytest.fixture
def group3(new_group):
    return new_group(3).start()


@pytest.fixture
def single(new_group):
    return new_group(1).start()


@pytest.fixture
def run_moonmq():
    """Runs a command of the program; the CompletedProcess, text."""

    def run(*arguments, check=True, timeout_s=120, binary=False, **options):
        done = subprocess.run(
            [str(moonmq_binary()), *map(str, arguments)], capture_output=True, text=not binary,
            timeout=timeout_s, check=False, **options)
        if check:
            assert done.returncode == 0, f"moonmq {' '.join(map(str, arguments))}: exit " \
                f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run


@pytest.fixture
def network(request):
    """Network namespaces, one a broker; skipped where the kernel does not let us."""
    if not namespaces.are_possible():
        pytest.skip("network namespaces need root")
    net = namespaces.Network()
    yield net
    net.clean_up()
