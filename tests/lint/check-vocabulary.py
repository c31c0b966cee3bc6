#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fails where a word that the glossary has replaced comes back into product code or user text.

    check-vocabulary.py SOURCE

The words and what to write instead are in WORDS. A line that needs one of them for a real reason, such
as a key of the bus contract, is in vocabulary.allow beside this file: a path, a tab, and a regular
expression that the line matches. An entry that allows nothing is an error, too.
"""
from __future__ import annotations

import re
import sys
from pathlib import Path

PLACES = ("daemon", "client", "libgpuarb", "dbus", "conf", "systemd", "docs", "README.md",
          "ARCHITECTURE.md", "HACKING.md", "CONTRIBUTING.md", "SECURITY.md")
TEXTS = {".c", ".h", ".in", ".xml", ".conf", ".scd", ".md", ".catalog", ".service", ".socket", ".hip",
         ".ini", ".sh", ".py", ".bash", ".zsh", ".fish"}

WORDS = {
    r"deal(s|t|ing)?": "mask codec, encode, decode",
    r"verdicts?": "result",
    r"strangers?": "unmanaged process",
    r"rungs?": "enforcement step",
    r"trickle": "rate limit",
    r"stor(y|ies)": "journal events",
    r"keepers?|kept alive by": "holder, bound process",
    r"untrue": "drift",
    r"wards?": "queue set",
    r"crowds?": "members",
    r"strays?": "unfollowed",
    r"g[ia]v(e|es|en|ing) way": "lend, shrink",
    r"ha(s|ve|d|ving) (it|them|that|its CUs|his CUs|theirs) back": "reclaim",
    r"who (waits|asks|asked|gives|holds|lends|borrows)": "the noun: waiting lease, caller, holder, borrower",
    r"(is|are) nobody": "matches no user",
    r"nobody is at": "no daemon is listening",
    r"pictures?": "snapshot",
    r"calm(ly)?": "preferred",
    r"legacy": "stored file descriptors",
    r"look(s|ed|ing)?(?![ -]up\b)": "examine, scan, search, snapshot",
}
WORD = re.compile("|".join(rf"(?P<w{i}>\b(?:{w})\b)" for i, w in enumerate(WORDS)), re.I)


class Allowed:
    def __init__(self, line: str) -> None:
        self.line = line
        self.path, _, pattern = line.partition("\t")
        self.pattern = re.compile(pattern)
        self.used = False

    def allows(self, path: str, line: str) -> bool:
        if path != self.path or not self.pattern.search(line):
            return False
        self.used = True
        return True


def words_of(code: str) -> str:
    """Identifiers are words, too: enforce_rung has the word rung."""
    return code.replace("_", " ")


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    allow = Path(__file__).with_name("vocabulary.allow")
    lines = allow.read_text(encoding="utf-8").splitlines() if allow.is_file() else []
    allowed = [Allowed(line) for line in lines if line and not line.startswith("#")]
    failed = False
    for place in PLACES:
        start = root / place
        for file in sorted(start.rglob("*")) if start.is_dir() else [start]:
            if not file.is_file() or file.suffix not in TEXTS:
                continue
            path = str(file.relative_to(root))
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                for match in WORD.finditer(words_of(line)):
                    if any([a.allows(path, line) for a in allowed]):
                        continue
                    instead = list(WORDS.values())[int((match.lastgroup or "w0")[1:])]
                    print(f"{path}:{number}: \"{match.group()}\": write {instead}")
                    failed = True
    for entry in allowed:
        if not entry.used:
            print(f"vocabulary.allow: nothing needs this line: {entry.line}")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
