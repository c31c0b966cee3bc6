#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fails where modules of the product depend on each other in a circle.

    check-cycles.py SOURCE

A module is NAME.c with NAME.h beside it, or one of the two where the other does not exist. Module A
depends on module B where A includes the header of B, and where A includes a header that declares a
function and uses that function, which B defines. The second rule matters for headers whose functions
are defined in several sources.

Silent where there is no circle. Otherwise it prints one with the names that tie it.
"""
from __future__ import annotations

import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

FOLDERS = ("daemon", "libgpuarb", "client")
INCLUDE_ROOTS = ("", "daemon")

COMMENT = re.compile(r"/\*.*?\*/", re.S)
LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
FUNCTION = re.compile(r"^(?!static\b|typedef\b|struct \w+ \{|enum\b)[a-z_][\w *]*?\*?\b([a-z_]\w*)\(", re.M)
WORD = re.compile(r"\b[a-z_]\w*\b")


class Source:
    def __init__(self, root: Path, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        self.name = str(path.relative_to(root))
        self.module = self.name[: -len(path.suffix)]
        self.header = path.suffix == ".h"
        self.includes = set(filter(None, (find(root, path, i) for i in INCLUDE.findall(text))))
        code = LITERAL.sub('""', COMMENT.sub(" ", text))
        self.words = set(WORD.findall(code))
        self.declares: set[str] = set()
        self.defines: set[str] = set()
        for match in FUNCTION.finditer(code):
            end = re.compile(r"[;{]").search(code, closing(code, match.end()))
            if end and end.group() == "{":
                self.defines.add(match.group(1))
            else:
                self.declares.add(match.group(1))


def closing(code: str, at: int) -> int:
    """The index behind the parenthesis that closes the one before `at`."""
    depth = 1
    while depth and at < len(code):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        at += 1
    return at


def find(root: Path, includer: Path, include: str) -> str | None:
    places = [includer.parent / include] + [root / r / include for r in INCLUDE_ROOTS]
    for place in places:
        if place.is_file():
            return str(place.resolve().relative_to(root.resolve()))
    return None


def edges_of(sources: dict[str, Source]) -> dict[str, dict[str, set[str]]]:
    definers = {}
    for source in sources.values():
        if not source.header:
            definers.update({(name, source.name): source.module for name in source.defines})
    where: dict[str, list[str]] = {}
    for name, path in definers:
        where.setdefault(name, []).append(path)

    edges: dict[str, dict[str, set[str]]] = {}
    for source in sources.values():
        out = edges.setdefault(source.module, {})
        for include in source.includes:
            header = sources.get(include)
            if header is None:
                continue
            if header.module != source.module:
                out.setdefault(header.module, set()).add('"' + include + '"')
            if source.header:
                continue
            for name in header.declares & source.words - source.defines:
                # The same name may be defined in several programs: the one whose source
                # includes this header is meant.
                for path in where.get(name, ()):
                    definer = sources[path]
                    if include in definer.includes and definer.module != source.module:
                        out.setdefault(definer.module, set()).add(name)
    return edges


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    paths = [p for f in FOLDERS for p in (root / f).rglob("*.[ch]")]
    sources = {s.name: s for s in (Source(root, p) for p in paths)}
    if not sources:
        print(f"{root}: no sources below {', '.join(FOLDERS)}")
        return 2
    edges = edges_of(sources)
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        circle = error.args[1]
        for other, module in zip(circle, circle[1:]):
            print(f"{module} -> {other}: {', '.join(sorted(edges[module][other]))}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
