#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks that the paths which the documents for contributors name exist in the source tree.

    check-paths.py SOURCE

A path is a word in backquotes, or the target of a link, that begins with a folder or file of the
source tree. "*" and "{a,b}" stand for themselves in file names as in a shell. "#..." is left out.
"""

import re
import sys
from pathlib import Path
from typing import List

DOCUMENTS = ('README.md', 'ARCHITECTURE.md', 'HACKING.md', 'CONTRIBUTING.md', 'SECURITY.md',
             'CHANGELOG.md', 'tests/kfdsim/README.md')


def alternatives(path: str) -> List[str]:
    match = re.search(r'\{([^}]*)\}', path)
    if not match:
        return [path]
    return [name for word in match.group(1).split(',')
            for name in alternatives(path[:match.start()] + word + path[match.end():])]


def main() -> int:
    source = Path(sys.argv[1])
    folders = {entry.name for entry in source.iterdir() if entry.is_dir()} - {'build', '.git'}
    wrong = 0
    found = 0
    for document in DOCUMENTS:
        if not (source / document).exists():
            print(f'{document}: missing')
            wrong += 1
            continue
        for n, line in enumerate((source / document).read_text().split('\n'), 1):
            links = [link for link in re.findall(r'\]\(([^)]*)\)', line) if '//' not in link]
            words = [word for code in re.findall(r'`([^`]+)`', line) for word in code.split()
                     if '/' in word and word.split('/')[0] in folders]
            bases = [source / document.rpartition('/')[0]] * len(links) + [source] * len(words)
            for base, path in zip(bases, links + words):
                for name in alternatives(path.split('#')[0].rstrip('.,;:')):
                    found += 1
                    if not list(base.glob(name)):
                        print(f'{document}:{n}: {name} does not exist')
                        wrong += 1
    if found < 10:
        print(f'only {found} paths were found')
        wrong += 1
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
