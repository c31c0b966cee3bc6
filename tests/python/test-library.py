#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The package binds libgpuarb as its headers declare it: every function is bound or left out with a
reason, with the types of its arguments, and every structure has its members at their offsets."""

import ctypes
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import rig

import gpuarb
from gpuarb import library

PACKAGE = rig.SOURCE / 'libgpuarb/python'
HEADERS = ('gpuarb.h', 'gpuarb-queues.h')
COMMENT = re.compile(r'/\*.*?\*/', re.S)
FUNCTION = re.compile(r'^((?:const )?(?:struct )?\w+ \**)(gpuarb_\w+)\(([^;]*)\);', re.M)

SCALARS = {
    'int': ctypes.c_int, 'unsigned': ctypes.c_uint, 'size_t': ctypes.c_size_t,
    'uint32_t': ctypes.c_uint32, 'uint64_t': ctypes.c_uint64, 'bool': ctypes.c_bool,
    'double': ctypes.c_double, 'char *': ctypes.c_char_p, 'void': None, 'void *': ctypes.c_void_p,
    'gpuarb_changed_t': library.Changed, 'gpuarb_lease_changed_t': library.LeaseChanged,
}


def header() -> str:
    texts = ((rig.SOURCE / 'libgpuarb' / name).read_text() for name in HEADERS)
    return '\n'.join(line for line in COMMENT.sub('', '\n'.join(texts)).split('\n')
                     if not line.startswith('#'))


def structures() -> Dict[str, Any]:
    """The structures of the package by the names of C: class LeaseInfo is struct lease_info."""
    return {'gpuarb_' + re.sub(r'(?<!^)([A-Z])', r'_\1', name).lower(): kind
            for name, kind in vars(library).items()
            if isinstance(kind, type) and issubclass(kind, ctypes.Structure)
            and kind is not ctypes.Structure}


def type_of(declaration: str) -> Any:
    """The type of ctypes for a type of C, without the name of an argument."""
    words = re.sub(r'\bconst\b', '', declaration).replace('*', ' * ').split()
    plain = ' '.join(words)
    if plain in SCALARS:
        return SCALARS[plain]
    if words[-1] != '*':
        raise AssertionError(f'{declaration}: unknown type')
    struct = structures().get(words[1]) if words[0] == 'struct' else None
    if words[0] == 'struct' and len(words) == 3:
        return ctypes.POINTER(struct) if struct else ctypes.c_void_p
    return ctypes.POINTER(type_of(' '.join(words[:-1])))


def argument_type(argument: str) -> Any:
    return type_of(re.sub(r'\w+$', '', argument.strip()) if ' ' in argument.strip() else argument)


def functions() -> Dict[str, Tuple[Any, ...]]:
    return {name: (type_of(result), *map(argument_type, arguments.split(',')))
            for result, name, arguments in FUNCTION.findall(header())
            if 'done' not in arguments}


def exported() -> List[str]:
    symbols = COMMENT.sub('', (rig.SOURCE / 'libgpuarb/gpuarb.sym').read_text())
    return re.findall(r'^\t(gpuarb_\w+);', symbols, re.M)


def files() -> List[str]:
    """The files of the package."""
    return sorted(str(path.relative_to(PACKAGE)) for path in (PACKAGE / 'gpuarb').iterdir()
                  if path.is_file())


class Binding(unittest.TestCase):
    def test_every_exported_function_is_bound_or_left_out(self) -> None:
        self.assertEqual(sorted(exported()), sorted([*library.PROTOTYPES, *library.LEFT_OUT]))

    def test_functions_have_the_types_of_the_header(self) -> None:
        declared = functions()
        self.assertGreater(len(declared), 80)
        for name, types in library.PROTOTYPES.items():
            with self.subTest(name):
                self.assertEqual(types, declared[name])

    def test_members_have_the_sizes_and_offsets_of_the_header(self) -> None:
        rows = list(self.members())
        program = ''.join(
            f'printf("%zu %zu\\n", offsetof(struct {struct}, {member}), '
            f'sizeof(((struct {struct} *)0)->{member}));' for struct, _, member in rows)
        program += ''.join(f'printf("%zu 0\\n", sizeof(struct {s}));' for s in structures())
        wanted = [(getattr(kind, member).offset, getattr(kind, member).size)
                  for _, kind, member in rows] + [(ctypes.sizeof(s), 0) for s in
                                                  structures().values()]
        names = [f'{struct}.{member}' for struct, _, member in rows] + list(structures())
        found = [tuple(map(int, line.split())) for line in self.run_c(program).split('\n') if line]
        self.assertEqual([*zip(names, found, strict=True)], [*zip(names, wanted, strict=True)])

    def test_structures_have_all_members_of_the_header(self) -> None:
        bodies = dict(re.findall(r'^struct (gpuarb_\w+) \{(.*?)^\};', header(), re.M | re.S))
        for struct, kind in structures().items():
            members = [name for line in bodies[struct].split(';')
                       for name in re.findall(r'\**(\w+)\s*(?:,|$)', line.strip())]
            with self.subTest(struct):
                self.assertEqual(members, [name for name, *_ in kind._fields_])

    @staticmethod
    def members() -> Iterator[Tuple[str, Any, str]]:
        for struct, kind in structures().items():
            for name, *_ in kind._fields_:
                yield struct, kind, name

    @staticmethod
    def run_c(statements: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, 'offsets.c')
            source.write_text('#include <stdio.h>\n#include "libgpuarb/gpuarb.h"\n'
                              f'int main(void) {{ {statements} return 0; }}\n')
            subprocess.run(['cc', f'-I{rig.SOURCE}', '-o', f'{folder}/offsets', source], check=True)
            return subprocess.run([f'{folder}/offsets'], check=True, text=True,
                                  capture_output=True).stdout

    def test_every_file_of_the_package_is_installed(self) -> None:
        listed = re.findall(r"'(gpuarb/[\w.]+)'", (PACKAGE / 'meson.build').read_text())
        self.assertEqual(listed, files())

    def test_a_wheel_has_every_file_of_the_package(self) -> None:
        system = '/usr/bin/python3'  # for which tests/setup installs the modules
        if subprocess.run([system, '-c', 'import setuptools, wheel, pip'],
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest('no python3-pip, python3-setuptools or python3-wheel')
        with tempfile.TemporaryDirectory() as folder:
            # setuptools writes into the source.
            source = shutil.copytree(PACKAGE, Path(folder, 'source'))
            subprocess.run([system, '-m', 'pip', 'wheel', '--quiet', '--no-build-isolation',
                            '--no-index', '--no-deps', '--wheel-dir', folder, source], check=True)
            wheel, = Path(folder).glob('*.whl')
            names = zipfile.ZipFile(wheel).namelist()
            self.assertEqual(sorted(n for n in names if n.startswith('gpuarb/')), files())
            done = rig.python('-c', 'import gpuarb; print(gpuarb.__file__)',
                              env={**os.environ, 'PYTHONPATH': str(wheel)})
            self.assertEqual(done.stdout, f'{wheel}/gpuarb/__init__.py\n')

    def test_every_record_of_the_package_is_exported(self) -> None:
        records = {name for module in list(sys.modules) if module.startswith('gpuarb.')
                   for name, kind in vars(sys.modules[module]).items()
                   if dataclasses.is_dataclass(kind)}
        self.assertIn('LeaseInfo', records)
        self.assertEqual(records - set(gpuarb.__all__), set())

    def test_a_missing_library_is_an_import_error_that_names_the_package(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, 'libgpuarb.so.0').write_text('not a library')
            done = rig.python('-c', 'import gpuarb', env={**os.environ, 'LD_LIBRARY_PATH': folder})
        self.assertEqual(done.returncode, 1)
        self.assertIn('ImportError: libgpuarb.so.0', done.stderr)
        self.assertIn('libgpuarb0', done.stderr)

    def test_a_function_that_an_older_library_lacks_fails_only_when_it_is_used(self) -> None:
        old = library.Library('libc.so.6')
        with self.assertRaisesRegex(NotImplementedError, 'gpuarb_view_since'):
            old.gpuarb_view_since(None, 0)
        with self.assertRaises(AttributeError):
            _ = old.printf


if __name__ == '__main__':
    rig.main()
