#!/usr/bin/env python3
"""Prints the manual page libmoonmq(3): the doc comments of include/moonmq.h, in its order.

    client_manual.py HEADER VERSION

The header is the reference; this only sets it out. A section begins at a line `/* ---- name ---- */`; what follows is
blocks, separated by blank lines: comments, each a description of the declaration below it. In a comment, a word with two
blanks behind it is explained by what follows, and indented text is code.
"""
import re
import sys
from pathlib import Path

SECTION = re.compile(r"^/\* ---- (.+?) ---- \*/$", re.M)


def escaped(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def comment_lines(comment):
    """Without its marks."""
    text = comment[2:-2]
    return [re.sub(r"^ \* ?", "", line).rstrip() for line in ("   " + text.lstrip("\n ")).split("\n")]


def prose(lines):
    """Lines of a comment as roff."""
    lines = [lines[0].strip()] + [re.sub(r"^ ?\*?$", "", line) for line in lines[1:]]
    out, code = [], False
    for line in lines:
        is_code = line.startswith("    ") and (code or not out or out[-1] == ".PP")
        term = re.match(r"^\s*(\w[\w, …]*?)  +(\S.*)$", line)
        if is_code != code:
            out.append(".nf\n.RS" if is_code else ".RE\n.fi")
            code = is_code
        if not line.strip():
            out.append(".PP")
        elif code:
            out.append(escaped(line[4:]))
        elif term:
            out += [".TP", f".I {escaped(term.group(1))}", escaped(term.group(2).strip())]
        else:
            out.append(escaped(line.strip()))
    if code:
        out.append(".RE\n.fi")
    return "\n".join(out) + "\n"


def declaration(text):
    text = re.sub(r"^MOONMQ_API ", "", text.rstrip(), flags=re.M)
    return ".PP\n.nf\n\\fB" + escaped(text) + "\\fR\n.fi\n"


def pieces(text):
    """(comment or None, declaration) of a section: comments that stand at the beginning of a line."""
    comment, lines, inside = None, [], None
    for line in text.split("\n"):
        if inside is not None:
            inside.append(line)
        elif line.startswith("/*"):
            if "".join(lines).strip():
                yield comment, "\n".join(lines).strip("\n")
                comment, lines = None, []
            inside = [line]
        elif not line.startswith("#if") and not line.startswith("#endif"):
            lines.append(line)
        if inside is not None and "*/" in inside[-1]:
            comment, inside = "\n".join(inside), None
    if comment or "".join(lines).strip():
        yield comment, "\n".join(lines).strip("\n")


def section(title, text):
    out = f".SH {escaped(title.upper())}\n"
    for comment, code in pieces(text):
        if code:
            out += declaration(code)
        if comment:
            out += ".PP\n.RS\n" + prose(comment_lines(comment)) + ".RE\n"
    return out


def page(header, version):
    about, rest = re.match(r"/\* moonmq\.h: (.*?)\*/\n(.*)", header, re.S).groups()
    body = rest[rest.index("/* Positive"):rest.rindex("#ifdef __cplusplus")]
    parts = SECTION.split(body)
    summary, about = about.split("\n", 1)
    out = f'.TH LIBMOONMQ 3 "" "MoonMQ {version}" "Library Functions"\n'
    out += f".SH NAME\nlibmoonmq \\- {escaped(summary.removeprefix('libmoonmq, ').rstrip('.'))}\n"
    out += ".SH SYNOPSIS\n.nf\n\\fB#include <moonmq.h>\\fR\n\ncc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs moonmq)\n.fi\n"
    out += ".SH DESCRIPTION\n" + prose(comment_lines("/* " + about.lstrip(" *\n") + "*/"))
    out += section("codes and connecting", parts[0])
    for title, text in zip(parts[1::2], parts[2::2]):
        out += section(title, text)
    return out + ".SH SEE ALSO\n.BR moonmq (1)\n"


def main():
    header, version = sys.argv[1:]
    sys.stdout.write(page(Path(header).read_text(encoding="utf-8"), version))


if __name__ == "__main__":
    main()
