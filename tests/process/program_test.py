"""The program's own table: help, manual page, completion and what was meant are read from it, for every command."""
import json
import os
import re
import shutil
import subprocess

import pytest

import clients
from group import ROOT, moonmq_binary
from terminal import Terminal

BASH = "source <(moonmq completion bash)\n"


def run(*arguments, **settings):
    return subprocess.run([str(moonmq_binary()), *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=False, env={**os.environ, **settings})


def table():
    return json.loads(run("help", "--format", "json").stdout)


def with_path():
    """So that the program is found by its name."""
    return {**os.environ, "PATH": f"{moonmq_binary().parent}:{os.environ['PATH']}"}


# ---- help ----

def test_each_command_tells_how_it_is_called_its_options_and_an_example():
    for entry in table():
        words = entry["command"].split()[1:]
        texts = {run(*words, flag).stdout for flag in ("-h", "--help")} | {run("help", *words).stdout}
        assert len(texts) == 1, entry["command"]
        (text,) = texts
        assert text.startswith(f"usage: {entry['command']} "), text
        assert max(len(line) for line in text.splitlines() if not line.startswith("  ")) <= 96
        for option in entry["options"]:
            assert f"--{option['name']}" in text
        if entry["options"]:
            assert "moonmq " in text.split("\nexamples:\n")[1], text


def test_the_program_without_a_command_tells_what_there_is():
    bare = run()
    assert bare.returncode == 2 and not bare.stdout and "moonmq serve" in bare.stderr
    assert run("help").stdout == bare.stderr == run("-h").stdout


@pytest.mark.parametrize("typed, said", [
    (("topc",), 'there is no command "topc"; did you mean "topic"?'),
    (("topic", "descrbe", "x"), 'there is no command "descrbe"; did you mean "describe"?'),
    (("help", "leader", "transfr"), 'did you mean "transfer"?'),
    (("topic", "create", "x", "--partitons", "3"), "there is no option --partitons; did you mean --partitions?"),
    (("consume", "x", "--until-edn"), "did you mean --until-end?"),
    (("produce", "--toppic=x"), "there is no option --toppic; did you mean --topic?"),
    (("status", "--zzzzzz"), "there is no option --zzzzzz\n"),
    (("topic", "create", "x", "--partitions"), "--partitions needs a value: N"),
    (("topic", "create", "x", "--if-not-exists=yes"), "--if-not-exists takes no value"),
    (("topic", "create"), "which topic?"),
    (("group", "reset", "g", "--topic", "t"), "--to is missing"),
    (("status", "-Z"), "there is no option -Z\n"),
    (("status", "--", "-Z"), '"-Z" is one word too many'),
    (("topic", "list", "extra"), '"extra" is one word too many'),
    (("topic", "list", "--format", "xml"), '--format is text or json, not "xml"'),
    (("version", "extra"), '"extra" is one word too many'),
    (("completion", "fish"), "for bash and for zsh"),
    (("config", "check", "a", "b"), "one file"),
    (("-b", "127.0.0.1:1", "status"), "-b comes before the command: options follow it"),
    (("status", "-b", "127.0.0.1:99999"), "--bootstrap 127.0.0.1:99999: a broker has no port from 1 to 65535"),
])
def test_what_was_typed_wrong_is_named_with_what_was_meant(typed, said):
    answer = run(*typed)
    assert answer.returncode == 2 and not answer.stdout
    assert said in answer.stderr and re.search("\n  `moonmq.* -h` (lists|tells)", answer.stderr)


def test_a_wrong_bootstrap_of_the_environment_is_named_unless_another_is_typed():
    answer = run("status", MOONMQ_BOOTSTRAP="foo")
    assert answer.returncode == 2 and "MOONMQ_BOOTSTRAP=foo: a broker has no port" in answer.stderr
    answer = run("status", "-b", "127.0.0.1:1", MOONMQ_BOOTSTRAP="foo")
    assert answer.returncode == 1 and "no leader serves: no broker answers" in answer.stdout


def test_a_configuration_that_is_not_there_says_so():
    answer = run("config", "check", "nofile.json")
    assert answer.returncode == 78 and "nofile.json: open: No such file" in answer.stderr
    assert "--config" not in answer.stderr


def test_values_and_beginnings_of_options_are_no_mistakes():
    assert run("hash", "--iter", "1", "--fo=json").returncode == 1  # no password, but no usage error
    assert run("consume", "x", "--key-separator", "--nope", "-nx").stderr.count("--count") == 1


def test_the_version_is_told_as_before():
    assert run("version").stdout == run("--version").stdout == run("-v").stdout
    assert run("version", "--short").stdout.strip() == json.loads(run("version", "--json").stdout)["version"]


# ---- manual page ----

def test_the_manual_page_names_every_command_and_option(tmp_path):
    page = run("help", "--manual").stdout
    plain = page.replace("\\-", "-").replace("\\e", "\\")
    for entry in table():
        if entry["options"]:
            assert f'.SS "{entry["command"]} [OPTION…]' in plain, entry["command"]
            section = plain[plain.index(f'.SS "{entry["command"]} [OPTION…]'):]
            section = section[:section.find("\n.S", 4)]
            for option in entry["options"]:
                assert f"--{option['name']}\\fR" in (section if option["own"] else plain)
    if shutil.which("man"):
        (tmp_path / "moonmq.1").write_text(page)
        shown = subprocess.run(["man", "--warnings", "-l", str(tmp_path / "moonmq.1")], capture_output=True, text=True,
                               check=True, env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "90"})
        assert not shown.stderr and "moonmq topic create [OPTION…] TOPIC" in shown.stdout


def test_the_library_s_manual_page_tells_of_every_function_and_code(tmp_path):
    header = (ROOT / "include/moonmq.h").read_text()
    page = subprocess.run(["python3", str(ROOT / "tools/client_manual.py"), str(ROOT / "include/moonmq.h"), "1.2.3"],
                          capture_output=True, text=True, check=True).stdout
    functions = re.findall(r"^MOONMQ_API [^(]*?(moonmq_\w+)\(", header, re.M)
    codes = re.findall(r"^    (MOONMQ_\w+) = ", header, re.M)
    assert len(functions) > 40 and len(codes) > 25 and "MOONMQ_API" not in page
    for name in functions + codes + re.findall(r"^struct (moonmq_\w+) {", header, re.M):
        assert re.search(rf"\b{name}\b", page), name
    if shutil.which("man"):
        (tmp_path / "libmoonmq.3").write_text(page)
        shown = subprocess.run(["man", "--warnings", "-l", str(tmp_path / "libmoonmq.3")], capture_output=True, text=True,
                               check=True, env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "100"})
        assert not shown.stderr and "int moonmq_next_record(" in shown.stdout


def test_the_broker_is_installed_with_its_manual_page_and_completions(tmp_path):
    subprocess.run(["cmake", "--install", str(moonmq_binary().parent), "--prefix", str(tmp_path), "--component", "broker"],
                   capture_output=True, check=True)
    assert (tmp_path / "share/man/man1/moonmq.1").read_text() == run("help", "--manual").stdout
    for place, shell in (("bash-completion/completions/moonmq", "bash"), ("zsh/site-functions/_moonmq", "zsh")):
        assert (tmp_path / "share" / place).read_text() == run("completion", shell).stdout


# ---- completion ----

def bash_offers(line, **settings):
    """What bash itself would offer at the end of the line."""
    script = BASH + """
        COMP_LINE=$1 COMP_POINT=${#1}
        # As readline splits it: at blanks, and at the characters of COMP_WORDBREAKS, which are words.
        COMP_WORDS=() rest=$1
        while [[ $rest =~ ^[[:space:]]*([=:]+|[^[:space:]=:]+) ]]; do
            COMP_WORDS+=("${BASH_REMATCH[1]}")
            rest=${rest#"${BASH_REMATCH[0]}"}
        done
        [[ -n $rest ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        compopt() { echo "compopt $*"; }
        _moonmq moonmq
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(["bash", "-c", script, "bash", line], capture_output=True, text=True, check=True,
                          timeout=30, env={**with_path(), **settings})
    assert not done.stderr, done.stderr
    return [word for word in done.stdout.split("\n") if word]


@pytest.mark.parametrize("line, offered", [
    ("moonmq top", ["topic"]),
    ("moonmq topic de", ["describe", "delete"]),
    ("moonmq topic create --par", ["--partitions"]),
    ("moonmq status --format ", ["text", "json"]),
    ("moonmq status --format=j", ["json"]),
    ("moonmq status --bootstrap 127.0.0.1:1 --fo", ["--format"]),
    ("moonmq consume --from ", ["beginning", "end"]),
    ("moonmq consume -f b", ["beginning"]),
    ("moonmq completion ", ["bash", "zsh"]),
    ("moonmq help topic gr", ["grow"]),
    ("moonmq log verify ", ["compopt -o default"]),
    ("moonmq config check ", ["compopt -o default"]),
    ("moonmq demo --dir ", ["compopt -o dirnames"]),
    ("moonmq topic alter orders retention.m", ["compopt -o nospace", "retention.ms="]),
    ("moonmq topic describe o", []),
    ("moonmq nonsense ", []),
])
def test_bash_completes(line, offered):
    assert bash_offers(line, MOONMQ_BOOTSTRAP="127.0.0.1:1") == offered


def test_every_command_and_option_is_offered():
    entries = table()
    for entry in entries:
        words = entry["command"].split()[1:]
        offered = run("complete", "--", *words, "--" if entry["options"] else "").stdout.splitlines()
        names = {line.split("\t")[0] for line in offered}
        if entry["options"]:
            assert names == {f"--{option['name']}" for option in entry["options"]}
        else:
            assert names == {other["command"].split()[-1] for other in entries
                             if other["command"].split()[1:-1] == words and other["command"] != "moonmq"}


def test_names_of_topics_and_groups_are_asked_for(single):
    for topic in ("orders", "other"):
        clients.create_topic(single.bootstrap, topic)
    clients.produce(single.bootstrap, "orders", [b"x"])
    assert run("consume", "orders", "--group", "billing", "--until-end",
               MOONMQ_BOOTSTRAP=single.bootstrap).returncode == 0
    known = {"MOONMQ_BOOTSTRAP": single.bootstrap}
    assert bash_offers("moonmq topic describe o", **known) == ["orders", "other"]
    assert bash_offers("moonmq consume --topic=or", **known) == ["orders"]
    assert bash_offers("moonmq group describe ", **known) == ["billing"]
    assert bash_offers(f"moonmq produce --bootstrap {single.bootstrap} --topic ot", MOONMQ_BOOTSTRAP="") == ["other"]
    assert bash_offers("moonmq group reset billing --topic or", **known) == ["orders"]


def test_zsh_completes():
    if shutil.which("zsh") is None:
        pytest.skip("no zsh")
    shell = Terminal(["zsh", "-f", "-i"], {**with_path(), "TERM": "dumb", "PS1": "% "})
    try:
        shell.type("autoload -Uz compinit && compinit -u -D && source <(moonmq completion zsh) && echo rea''dy\n")
        shell.wait_for("ready")
        shell.type("moonmq topic cr\t")
        shell.wait_for("create ")
        shell.type("--partit\t")
        shell.wait_for("--partitions ")
        shell.type("3 --format=j\t")
        shell.wait_for("--format=json")
    finally:
        shell.close()
