#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares the states of a lease: the enumeration of daemon/core, its names, and the texts that list them.

    check-states.py SOURCE

The drawing of ARCHITECTURE.md, in the section "The state of a lease", has each state in capitals, and
no other word of capitals but GPU. The interface and the header of the library name each state in quotes.
"""

import re
import sys
from pathlib import Path
from typing import Iterable, Set

QUOTING = ('dbus/org.gpuarb.Arbiter1.xml', 'libgpuarb/gpuarb.h')


def section(text: str, start: str, end: str, place: str) -> str:
    match = re.search(re.escape(start) + r'(.*?)' + end, text, re.S)
    if not match:
        sys.exit(f'{place}: no "{start}"')
    return match.group(1)


def compare(place: str, found: Iterable[str], states: Set[str]) -> int:
    found = set(found)
    for state in sorted(states - found):
        print(f'{place}: does not name the state {state}')
    for word in sorted(found - states):
        print(f'{place}: {word} is no state of a lease')
    return len(states ^ found)


def main() -> int:
    source = Path(sys.argv[1])

    def read(path: str) -> str:
        return (source / path).read_text(encoding='utf-8')

    header, names = 'daemon/core/policy/class.h', 'daemon/core/policy/class.c'
    states = set(re.findall(r'STATE_(\w+)', section(read(header), 'enum lease_state {', '}', header)))
    entries = re.findall(r'\[STATE_(\w+)\] = "(\w+)"',
                         section(read(names), 'state_names[] = {', '};', names))
    drawing = section(section(read('ARCHITECTURE.md'), '## The state of a lease\n', r'\n## ',
                              'ARCHITECTURE.md'), '```\n', '```', 'ARCHITECTURE.md')

    wrong = compare(names, (state for state, _ in entries), states)
    wrong += sum(name.upper() != state for state, name in entries)
    drawn = set(re.findall(r'\b[A-Z]{2,}\b', drawing))
    wrong += compare('ARCHITECTURE.md', drawn - {'GPU'}, states)
    for place in QUOTING:
        text = read(place)
        quoted = {state for state in states if f'"{state.lower()}"' in text}
        wrong += compare(place, quoted, states)
    if not states:
        print(f'{header}: no state was found')
    return 1 if wrong or not states else 0


if __name__ == '__main__':
    sys.exit(main())
