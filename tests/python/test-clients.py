#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The clients in Go and Rust that docs/make-client makes of the interface compile with packages of
Debian, and reserve CUs of a simulated GPU. A language without its packages is skipped."""

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Dict, List

import rig

import gpuarb

XML = rig.SOURCE / 'dbus/org.gpuarb.Arbiter1.xml'
EXAMPLES = rig.SOURCE / 'docs/examples'
GO_LIBRARY = Path('/usr/share/gocode/src/github.com/godbus/dbus')
RUST_LIBRARY = Path('/usr/share/cargo/registry/dbus-0.9*')
SECONDS = 500.0  # to compile


def has(program: str, library: Path) -> bool:
    return shutil.which(program) is not None and any(library.parent.glob(library.name))


class Clients(rig.MachineTest):
    def compile(self, language: str, module: str, command: List[str], **variables: str) -> Path:
        """Copies the example beside what make-client writes, and compiles both."""
        folder = self.machine.folder / language
        shutil.copytree(EXAMPLES / language, folder)
        (folder / module).write_text(subprocess.run(
            [rig.SOURCE / 'docs/make-client', XML, language],
            check=True, capture_output=True, text=True).stdout)
        environment: Dict[str, str] = {
            **os.environ, **variables, 'GOCACHE': f'{folder}/cache',
            'CARGO_HOME': f'{folder}/cargo', 'CARGO_NET_OFFLINE': 'true'}
        environment.pop('LD_LIBRARY_PATH', None)
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True,
                              timeout=SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        return folder

    def reserves_and_is_refused(self, program: Path) -> None:
        done = subprocess.run([program], capture_output=True, text=True, timeout=rig.SECONDS)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        lines = done.stdout.splitlines()
        self.assertEqual((lines[0], lines[-1]),
                         ('0000:03:00.0: 60 CUs free', '0000:03:00.0: 45 CUs free'))
        self.assertRegex(lines[1], '^/org/gpuarb/Arbiter1/lease/[0-9]+ is granted: 15 CUs of '
                                   '0000:03:00.0, mask ')
        with gpuarb.reserve(cus=60):
            done = subprocess.run([program], capture_output=True, text=True, timeout=rig.SECONDS)
        self.assertEqual(done.returncode, 3)
        self.assertIn('org.gpuarb.Arbiter1.Error.NoCapacity', done.stderr)

    @unittest.skipUnless(has('go', GO_LIBRARY), 'no golang-go or golang-dbus-dev')
    def test_go(self) -> None:
        folder = self.compile(
            'go', 'gpuarb.go',
            ['sh', '-ec', 'go mod edit -replace "github.com/godbus/dbus/v5=$0"; go build -o client',
             str(GO_LIBRARY)], GOPROXY='off', GOFLAGS='-mod=mod', GOTOOLCHAIN='local')
        self.reserves_and_is_refused(folder / 'client')

    @unittest.skipUnless(has('cargo', RUST_LIBRARY), 'no cargo or librust-dbus-dev')
    def test_rust(self) -> None:
        folder = self.compile('rust', 'src/gpuarb.rs',
                              ['cargo', 'build', '--config',
                               f'source.debian.directory="{RUST_LIBRARY.parent}"',
                               '--config', 'source.crates-io.replace-with="debian"'])
        self.reserves_and_is_refused(folder / 'target/debug/gpuarb-client')


if __name__ == '__main__':
    if not os.environ.get('GPUARB_LONG'):
        print('skipped: Go and Rust take long to compile: tests/run --long')
        sys.exit(77)
    if not has('go', GO_LIBRARY) and not has('cargo', RUST_LIBRARY):
        print('skipped: neither golang-dbus-dev nor librust-dbus-dev of Debian is installed')
        sys.exit(77)
    rig.main()
