#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the static analyzers of GCC and Clang over the product, and GCC as for a release: at -O3 it warns of more.

    check-analyzers.py SOURCE BUILD [gcc|release|clang]... [FILE...]

BUILD is a folder for a build that is set up and not built; without FILE all of the product. A finding
that is wrong is in analyzers.allow beside this file: the analyzer (gcc, release or clang), the file, the name of the warning, a regular
expression for its text, and the reason, separated by tabs. An entry that allows nothing is an error, too.
Runs only under tests/run --long: it takes minutes.
"""
from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDERS = ('client/', 'daemon/', 'dbus/', 'libgpuarb/')
# It includes a header that the build makes.
GENERATED = ('daemon/helpers/budget/programs.c',)
ANALYZERS = {
    # GCC does not see that a structure owns what is stored in it, nor what a function that succeeds has set: Clang
    # judges the latter, and LeakSanitizer the former, where the tests make allocations fail.
    'gcc': ['gcc', '-O1', '-fanalyzer', *('-Wno-analyzer-' + name for name in (
        'malloc-leak', 'mismatching-deallocation', 'null-dereference', 'use-of-uninitialized-value')),
            '-c', '-o', '/dev/null'],
    'release': ['gcc', '-O3', '-Wall', '-Wextra', '-Wformat=2', '-c', '-o', '/dev/null'],
    # Clang does not know that a cleanup function uses its variable.
    'clang': ['clang', '--analyze', '--analyzer-output', 'text',
              *(word for checker in ('unix.Malloc', 'deadcode.DeadStores')
                for word in ('-Xclang', '-analyzer-disable-checker=' + checker))],
}
WARNING = re.compile(r'^(?P<file>[^:\s]+):(?P<line>\d+):\d+: warning: (?P<text>.*) \[(?P<name>[^\]]+)\]$')


def arguments(entry: dict) -> list[str]:
    """The options of the compile command that say how to read the file."""
    kept = []
    words = iter(shlex.split(entry['command'])[1:])
    for word in words:
        if word in ('-o', '-MF', '-MQ', '-MT'):
            next(words)
        elif word.startswith(('-I', '-D', '-std=', '-isystem', '-U')):
            kept.append(word)
    return kept


def analyze(name: str, entry: dict, source: Path) -> list[tuple[str, str, str, str]]:
    command = ANALYZERS[name] + arguments(entry) + [entry['file']]
    run = subprocess.run(command, cwd=entry['directory'], capture_output=True, text=True,
                         env=os.environ | {'LC_ALL': 'C'}, check=False)
    if run.returncode != 0:
        return [(name, entry['file'], 'failed', run.stderr.strip()[-2000:])]
    findings = set()
    for line in run.stderr.split('\n'):
        match = WARNING.match(line)
        if not match:
            continue
        path = os.path.relpath(os.path.join(entry['directory'], match['file']), source)
        findings.add((name, path, match['name'], f"{match['line']}: {match['text']}"))
    return sorted(findings)


def allowed_by(entry: list[str], finding: tuple[str, str, str, str]) -> bool:
    return tuple(entry[:3]) == finding[:3] and re.search(entry[3], finding[3]) is not None


def compile_commands(source: Path, build: Path, only: list[str]) -> list[dict[str, str]]:
    """One command for each file of the product."""
    if not (build / 'compile_commands.json').exists():
        subprocess.run(['meson', 'setup', str(build), str(source), '-Dtests=false', '-Dman=disabled'],
                       stdout=subprocess.DEVNULL, check=True)
    entries: dict[str, dict[str, str]] = {}
    for entry in json.loads((build / 'compile_commands.json').read_text()):
        path = os.path.relpath(os.path.join(entry['directory'], entry['file']), source)
        if path.startswith(FOLDERS) and path.endswith('.c') and path not in GENERATED and (
                not only or path in only):
            entries.setdefault(path, entry)
    return list(entries.values())


def main() -> int:
    if not os.environ.get('GPUARB_LONG'):
        print('skipped: static analysis takes minutes: tests/run --long')
        return 77
    source, build, rest = Path(sys.argv[1]).resolve(), Path(sys.argv[2]), sys.argv[3:]
    names = [name for name, command in ANALYZERS.items()
             if shutil.which(command[0]) and (name in rest or not set(rest) & set(ANALYZERS))]
    only = [path for path in rest if path not in ANALYZERS]
    allow = [line.split('\t') for line in (Path(__file__).parent / 'analyzers.allow').read_text().split('\n')
             if line and not line.startswith('#')]
    jobs = [(name, entry) for name in names for entry in compile_commands(source, build, only)]
    findings = []
    wrong = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for result in pool.map(lambda job: analyze(*job, source), jobs):
            for finding in result:
                findings.append(finding)
                if not any(allowed_by(entry, finding) for entry in allow):
                    wrong += 1
                    print(f'{finding[1]}:{finding[3]} [{finding[0]}: {finding[2]}]', flush=True)
    unused = [] if only else [entry for entry in allow if entry[0] in names and
                              not any(allowed_by(entry, finding) for finding in findings)]
    for entry in unused:
        print(f'analyzers.allow: allows nothing: {" ".join(entry[:4])}')
    print(f'{len(jobs)} runs of {", ".join(names)}: {len(findings)} findings, {wrong} not allowed')
    return 1 if wrong or unused or not jobs else 0


if __name__ == '__main__':
    sys.exit(main())
