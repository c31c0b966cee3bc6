# SPDX-License-Identifier: LGPL-2.1-or-later
"""A private bus with the shipped gpuarbd, for the tests of the Python package.

Environment: GPUARBD is the daemon, GPUARB_SOURCE_ROOT the source tree. LD_LIBRARY_PATH has the
folder of a libgpuarb.so.0 without sanitizers, PYTHONPATH that of the package.
"""

import contextlib
import os
import pwd
import re
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from typing import IO, Any, Iterator, List, Optional

SOURCE = Path(os.environ.get('GPUARB_SOURCE_ROOT', Path(__file__).parents[2]))
# How long a test waits for anything that has to happen: the one limit, tests/rigs/await.h.
SECONDS = float(re.findall(r'#define AWAIT_LIMIT_SEC (\d+)',
                           (SOURCE / 'tests/rigs/await.h').read_text())[0])
SECONDS *= float(os.environ.get('GPUARB_PATIENCE', '1'))
NAME = 'org.gpuarb.Arbiter1'

BUS_CONFIG = '''<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/> <allow own="*"/> <allow eavesdrop="true"/>
    <allow send_type="method_call"/> <allow send_type="signal"/>
    <allow send_requested_reply="true"/> <allow receive_requested_reply="true"/>
    <allow send_destination="*"/> <allow receive_sender="*"/>
  </policy>
</busconfig>
'''

TENANTS = f'''[tenant lab]
match-user = {pwd.getpwuid(os.getuid()).pw_name}
class = realtime
priority = 15
'''


def line_with(stream: IO[bytes], text: str) -> None:
    """Reads lines up to one with the text."""
    while select.select([stream], [], [], SECONDS)[0]:
        line = stream.readline()
        if not line:
            break
        if text in line.decode():
            return
    raise AssertionError(f'no {text!r} within {SECONDS:.0f} s')


def kill_after(first: 'subprocess.Popen[bytes]', second: 'subprocess.Popen[bytes]') -> None:
    """Waits for the end of the first process and kills the second if the first has failed."""
    if first.wait() != 0:
        second.kill()


class Machine:
    """A private bus, and a gpuarbd with simulated GPUs on it."""

    def __init__(self, simulate: str = 'radeon-vii', tenants: str = TENANTS,
                 configuration: str = '') -> None:
        self.folder = Path(tempfile.mkdtemp(prefix='gpuarb-python-'))
        self.simulate = simulate
        (self.folder / 'tenants.d').mkdir()
        (self.folder / 'run').mkdir()
        (self.folder / 'gpuarbd.conf').write_text(configuration)
        (self.folder / 'tenants.d/10-lab.conf').write_text(tenants)
        self.address = f'unix:path={self.folder}/bus'
        (self.folder / 'bus.conf').write_text(BUS_CONFIG.format(self.folder / 'bus'))
        self.bus = subprocess.Popen(
            ['dbus-daemon', f'--config-file={self.folder}/bus.conf', '--nofork', '--print-address'],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.bus.stdout
        line_with(self.bus.stdout, 'unix:')
        self.daemon: Optional['subprocess.Popen[bytes]'] = None
        self.start()

    def start(self, *options: str) -> None:
        """Starts gpuarbd, and waits until it owns its name."""
        monitor = subprocess.Popen(
            ['dbus-monitor', '--address', self.address,
             f"type='signal',member='NameOwnerChanged',arg0='{NAME}'"],
            stdout=subprocess.PIPE, bufsize=0)
        assert monitor.stdout
        line_with(monitor.stdout, 'NameAcquired')
        errors = (self.folder / 'daemon.err').open('ab')
        self.daemon = subprocess.Popen(
            [os.environ['GPUARBD'], *(options or [f'--simulate={self.simulate}']),
             f'--profiles={SOURCE}/conf/gpus', f'--config={self.folder}/gpuarbd.conf',
             f'--tenants={self.folder}/tenants.d'],
            env={**os.environ, 'RUNTIME_DIRECTORY': str(self.folder / 'run'),
                 'DBUS_SYSTEM_BUS_ADDRESS': self.address, 'GPUARB_BUS_ADDRESS': self.address},
            stderr=errors)
        errors.close()
        # A daemon that fails ends the monitor, too: then there is no line.
        threading.Thread(target=kill_after, args=(self.daemon, monitor), daemon=True).start()
        try:
            line_with(monitor.stdout, 'member=NameOwnerChanged')
        except AssertionError:
            sys.stderr.write((self.folder / 'daemon.err').read_text())
            raise
        finally:
            monitor.kill()
            monitor.wait()
            monitor.stdout.close()

    def stop(self) -> int:
        assert self.daemon
        self.daemon.terminate()
        status = self.daemon.wait(SECONDS)
        self.daemon = None
        return status

    def close(self) -> None:
        try:
            status = self.stop() if self.daemon else 0
            if status != 0:
                sys.stderr.write((self.folder / 'daemon.err').read_text())
                raise AssertionError(f'gpuarbd ended with {status}')
        finally:
            self.bus.terminate()
            self.bus.wait(SECONDS)
            assert self.bus.stdout
            self.bus.stdout.close()
            shutil.rmtree(self.folder)


class MachineTest(unittest.TestCase):
    """Tests with one machine for all tests of the class."""
    simulate = 'radeon-vii'
    tenants = TENANTS
    machine: Machine

    @classmethod
    def setUpClass(cls) -> None:
        cls.machine = Machine(cls.simulate, cls.tenants)
        cls.addClassCleanup(cls.machine.close)
        os.environ['GPUARB_BUS_ADDRESS'] = cls.machine.address


@contextlib.contextmanager
def variables(**values: Optional[str]) -> Iterator[None]:
    """Sets variables of this process, or unsets them, for a block."""
    saved = dict(os.environ)
    try:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        yield
    finally:
        for name in set(os.environ) - set(saved):
            del os.environ[name]
        os.environ.update(saved)


def python(*arguments: str, **options: Any) -> 'subprocess.CompletedProcess[str]':
    """Runs another Python of the same version with the same package."""
    done: 'subprocess.CompletedProcess[str]' = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=SECONDS, **options)
    return done


def main() -> None:
    if not shutil.which('dbus-daemon') or not shutil.which('dbus-monitor'):
        print('skipped: no dbus-daemon or dbus-monitor')
        sys.exit(77)
    names: List[str] = sys.argv[1:]
    unittest.main(argv=[sys.argv[0], *names])
