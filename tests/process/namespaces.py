"""namespaces.py: a network of namespaces on one bridge, so that hosts can be cut off from each other.

Each host is a namespace with one address; the tests' own clients run in the machine's namespace, which
has an address on the bridge. A cut drops packets silently, as a broken cable or a firewall does, in one
direction or in both.
"""
import functools
import itertools
import os
import subprocess

SUBNETS = itertools.count()


def _run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True)


@functools.lru_cache
def are_possible():
    if os.geteuid() != 0:
        return False
    name = f"mq{os.getpid()}p"
    try:
        if _run("ip", "netns", "add", name, check=False).returncode != 0:
            return False
        works = _run("ip", "netns", "exec", name, "iptables", "-A", "INPUT", "-s", "10.1.1.1", "-j", "DROP",
                     check=False).returncode == 0
        bridge = _run("ip", "link", "add", f"{name}b", "type", "bridge", check=False).returncode == 0
        _run("ip", "link", "del", f"{name}b", check=False)
        return works and bridge
    except OSError:
        return False
    finally:
        _run("ip", "netns", "del", name, check=False)


class Host:
    def __init__(self, name, address):
        self.name, self.address = name, address

    @property
    def launcher(self):
        return ["ip", "netns", "exec", self.name]


class Network:
    def __init__(self):
        number = next(SUBNETS)
        self.prefix = f"mq{os.getpid() % 10000}n{number}"
        self.subnet = f"10.{100 + os.getpid() % 100}.{number % 250}"
        self.bridge = f"{self.prefix}b"
        self.hosts = []
        _run("ip", "link", "add", self.bridge, "type", "bridge")
        _run("ip", "address", "add", f"{self.subnet}.254/24", "dev", self.bridge)
        _run("ip", "link", "set", self.bridge, "up")

    def add_host(self):
        index = len(self.hosts) + 1
        host = Host(f"{self.prefix}h{index}", f"{self.subnet}.{index}")
        outside, inside = f"{self.prefix}v{index}", "eth0"
        _run("ip", "netns", "add", host.name)
        self.hosts.append(host)
        _run("ip", "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", host.name)
        _run("ip", "link", "set", outside, "master", self.bridge, "up")
        _run(*host.launcher, "ip", "address", "add", f"{host.address}/24", "dev", inside)
        _run(*host.launcher, "ip", "link", "set", inside, "up")
        _run(*host.launcher, "ip", "link", "set", "lo", "up")
        return host

    def block(self, source, target):
        """Drops what `source` sends to `target`, and nothing else."""
        _run(*target.launcher, "iptables", "-A", "INPUT", "-s", source.address, "-j", "DROP")

    def cut(self, a, b):
        self.block(a, b)
        self.block(b, a)

    def isolate(self, host, from_hosts):
        for other in from_hosts:
            if other is not host:
                self.cut(host, other)

    def heal(self):
        for host in self.hosts:
            _run(*host.launcher, "iptables", "-F", "INPUT")

    def clean_up(self):
        for host in self.hosts:
            _run("ip", "netns", "del", host.name, check=False)
        _run("ip", "link", "del", self.bridge, check=False)
