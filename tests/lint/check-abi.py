#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""check-abi.py LIBRARY HEADERS RELEASE: programs of the last release run with this libgpuarb.

RELEASE has the structs of its headers, and its functions behind the versions of their symbols. The compiler
compares the types with those of today, and nm(1) the symbols. A struct that begins with its size may grow
at its end. check-abi.py --write LIBRARY HEADERS prints such a file of this tree, for a release.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

COMPILER = os.environ.get('CC', 'cc').split()
SYSTEM = ''.join(f'#include <{name}.h>\n' for name in ('stddef', 'sys/ioctl'))
SYSTEM += '#define TYPE_OF(struct_type, member) typeof(((struct_type *)0)->member)\n'
FUNCTION = re.compile(r'^(?P<version>\w+) (?P<declaration>.*?\b(?P<name>\w+)\(.*\);)$')
STRUCT = re.compile(r'^struct (\w+) \{\n(.*?)^\};\n', re.MULTILINE | re.DOTALL)


def symbols_of(library: str) -> dict[str, str]:
    """Each exported function with its version, Base without one."""
    listed = subprocess.run(['nm', '-D', '--defined-only', library], text=True, check=True,
                            stdout=subprocess.PIPE).stdout
    return {name: version or 'Base' for name, version in re.findall(r' T (\w+)(?:@@(\w+))?$', listed, re.MULTILINE)}


def write(library: str, headers: Path) -> None:
    versions = symbols_of(library)
    for name in ('gpuarb-queues.h', 'gpuarb.h'):
        text = (headers / name).read_text().replace('#pragma once', '')
        text = re.sub(r'^#define (.*\\\n)*.*\n', '', text, flags=re.MULTILINE)
        text = subprocess.run([*COMPILER, '-fpreprocessed', '-E', '-P', '-xc', '-'], input=text, text=True,
                              check=True, stdout=subprocess.PIPE).stdout
        text = re.sub(r'^(#.*|extern "C" \{|\})\n', '', text, flags=re.MULTILINE)
        text = re.sub(r'([,(])\n\s*', lambda end: end[1].replace(',', ', '), text)
        for line in text.splitlines():
            function = FUNCTION.match('_ ' + line)
            version = versions.get(function['name']) if function else None
            print(f'{version} {line}' if version else re.sub('^ +', '\t', line))
    if 'ioctl' in versions:
        print(versions['ioctl'], 'int ioctl(int fd, unsigned long request, ...);')


def members_of(body: str) -> list[str]:
    return [re.findall(r'\w+', member)[-1] for member in re.split('[;,]', body.rstrip().rstrip(';'))]


def types_differ(release: str, headers: Path) -> bool:
    """Compiles the header of today, and what the release declared after it."""
    lines = [match['declaration'] if (match := FUNCTION.match(line)) else line for line in
             STRUCT.sub('', release).splitlines()]
    text = SYSTEM + '#include "gpuarb.h"\n' + '\n'.join(lines) + '\n'
    for name, body in STRUCT.findall(release):
        members = members_of(body)
        text += f'struct released_{name} {{\n{body}}};\n'
        sizes = '>=' if members[0] == 'size' else '=='
        text += f'_Static_assert(sizeof(struct {name}) {sizes} sizeof(struct released_{name}), "{name}: its size");\n'
        for member in members:
            now, then = (f'(struct {prefix}{name}, {member})' for prefix in ('', 'released_'))
            text += (f'_Static_assert(offsetof{now} == offsetof{then}, "{name}.{member}: its place");\n'
                     f'_Static_assert(__builtin_types_compatible_p(TYPE_OF{now}, TYPE_OF{then}),'
                     f' "{name}.{member}: its type");\n')
    return subprocess.run([*COMPILER, '-std=gnu17', '-fsyntax-only', f'-I{headers}', '-xc', '-'], input=text,
                          text=True, check=False).returncode != 0


def symbols_differ(release: str, library: str) -> bool:
    now = symbols_of(library)
    then = {function['name']: function['version'] for line in release.splitlines()
            if (function := FUNCTION.match(line))}
    differing = [f'{name} is no longer a function of {version}' for name, version in then.items()
                 if now.get(name) != version]
    differing += [f'{name} is in {version}, which is released: give it the next version in gpuarb.sym'
                  for name, version in now.items() if name not in then and version in then.values()]
    if not then:
        differing.append('the release has no functions')
    print('\n'.join(differing), end='\n' if differing else '')
    return bool(differing)


def main() -> None:
    if sys.argv[1] == '--write':
        write(sys.argv[2], Path(sys.argv[3]))
        return
    library, headers, release = sys.argv[1:]
    text = Path(release).read_text()
    if types_differ(text, Path(headers)) + symbols_differ(text, library):
        sys.exit(f'libgpuarb.so.0 differs from {release}')


main()
