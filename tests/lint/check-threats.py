#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks that the tests which the threat model in SECURITY.md names exist.

    check-threats.py SOURCE

Each row of its tables names at least one test in backquotes: a test of meson, which is a file test-NAME.*
or check-NAME.*, perhaps with one of its cases (NAME:CASE; in Python, the function); system/PART:FUNCTION, a
function of a part of tests/system; or fuzz:TARGET.
"""
from __future__ import annotations

import re
import sys
from pathlib import Path

ROWS_MIN = 25


def find(tests: Path, name: str) -> list[Path]:
    if name.startswith('system/'):
        return list(tests.glob(f'system/parts/{name[7:]}.sh'))
    if name == 'fuzz':
        return list(tests.glob('fuzz/fuzz-*.c'))
    return list(tests.glob(f'**/test-{name}.*')) + list(tests.glob(f'lint/check-{name}.*'))


def has_case(text: str, name: str, case: str) -> bool:
    if name.startswith('system/'):
        return re.search(rf'^{case}\(\)', text, re.M) is not None
    if case.startswith('test_'):
        return f'def {case}(' in text
    return re.search(rf'^(FUZZ|TEST|TEST_CASE|TEST_WITH|LIB_TEST|AGENT_TEST)\({case}[,)]', text, re.M) is not None


def complaint(tests: Path, word: str) -> str | None:
    name, _, case = word.partition(':')
    files = find(tests, name)
    if not files:
        return 'no such test'
    if case and not any(has_case(file.read_text(), name, case) for file in files):
        return f'{files[0].relative_to(tests.parent)} has no such case'
    return None


def main() -> int:
    source = Path(sys.argv[1])
    text = (source / 'SECURITY.md').read_text()
    wrong = rows = 0
    for n, line in enumerate(text.split('\n'), 1):
        if not line.startswith('| ') or line.endswith('| tests |'):
            continue
        rows += 1
        words = re.findall(r'`([^`]+)`', line.rstrip(' |').rpartition(' | ')[2])
        found = [(word, complaint(source / 'tests', word)) for word in words]
        for word, why in found or [('', 'names no test')]:
            if why:
                print(f'SECURITY.md:{n}: {word}: {why}')
                wrong += 1
    if rows < ROWS_MIN:
        print(f'SECURITY.md: only {rows} rows of the threat model were found')
        wrong += 1
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
