#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks that the paths and functions which the documents for contributors name exist in the source
tree, that no two files of the product but main.c have one name, that ARCHITECTURE.md names each program, and that sections of manual pages exist which other
pages name: "SECTION in *page*(7)" and "*page*(7), SECTION".

    check-paths.py SOURCE

A path is a word in backquotes, or the target of a link, that begins with a folder or file of the
source tree. "*" and "{a,b}" stand for themselves in file names as in a shell. "#..." is left out.
A function is a word in backquotes that ends with "()".
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


def check_names(source: Path) -> int:
    wrong = 0
    text = ''.join(path.read_text() for folder in ('daemon', 'libgpuarb', 'client', 'tests')
                   for path in sorted((source / folder).rglob('*.[ch]')))
    functions = set(re.findall(r'\b(\w+)\(', text))
    product = [path for folder in ('daemon', 'libgpuarb', 'client')
               for path in sorted((source / folder).rglob('*.[ch]')) if path.name != 'main.c']
    for path in product:
        if [other.name for other in product].count(path.name) > 1:
            print(f'{path.relative_to(source)}: another file of the product has this name')
            wrong += 1
    for document in DOCUMENTS[1:5]:
        for name in re.findall(r'`(\w+)\(\)`', (source / document).read_text()):
            if name not in functions:
                print(f'{document}: there is no function {name}()')
                wrong += 1
    builds = ''.join(path.read_text() for folder in ('daemon', 'libgpuarb', 'client')
                     for path in sorted((source / folder).rglob('meson.build')))
    programs = re.findall(r"executable\('([^']*)'", builds)
    table = (source / 'ARCHITECTURE.md').read_text().split('\n## ')[1]
    for name in programs:
        if not re.search(rf'^\|[^|]*\b{name}\b[^|]*\|', table, re.M):
            print(f'ARCHITECTURE.md: the table of programs lacks {name}')
            wrong += 1
    return wrong if len(programs) > 8 and len(functions) > 1000 else wrong + 1


def check_sections(source: Path) -> int:
    wrong = 0
    pages = {page.stem: re.sub(r'^```.*?^```', '', page.read_text(), flags=re.S | re.M)
             for page in sorted((source / 'docs').glob('*.scd'))}
    sections = {name: re.findall(r'^##? (.*)$', text, re.M) for name, text in pages.items()}
    for name, text in pages.items():
        words = ' '.join(text.split())
        named = re.findall(r'([A-Z]{4}[A-Z ]*) (?:in|of) \*([\w.-]+)\*\((\d)\)', words)
        named += [(section, page, number) for page, number, section in
                  re.findall(r'\*([\w.-]+)\*\((\d)\), ([A-Z]{4}[A-Z ]*[A-Z])\b', words)]
        for section, page, number in named:
            known = sections.get(f'{page}.{number}', [section])
            if not any(title.endswith(section) for title in known):
                print(f'docs/{name}.scd: {page}({number}) has no section {section}')
                wrong += 1
    return wrong


def main() -> int:
    source = Path(sys.argv[1])
    folders = {entry.name for entry in source.iterdir() if entry.is_dir()} - {'build', '.git'}
    wrong = check_names(source) + check_sections(source)
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
