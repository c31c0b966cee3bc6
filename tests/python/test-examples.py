#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The examples in docs/examples/python, with gpuarbd and a simulated Radeon VII. The stand-ins have
the interface of packages that are not in Debian."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import rig

import gpuarb

EXAMPLES = rig.SOURCE / 'docs/examples/python'


class Examples(rig.MachineTest):
    def run_example(self, name: str, *arguments: str) -> str:
        path = f'{Path(__file__).with_name("stand-ins")}:{os.environ["PYTHONPATH"]}'
        # Without a buffer, print() writes a line in two parts, and those of processes mix.
        done = rig.python(str(EXAMPLES / name), *arguments,
                          env={**os.environ, 'PYTHONPATH': path, 'PYTHONUNBUFFERED': ''})
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        return done.stdout

    def test_inference_runs_beside_training(self) -> None:
        lines = self.run_example('inference-beside-training.py', '3').split('\n')
        self.assertIn('training: done', lines)
        self.assertIn('inference: 3 requests on 15 CUs', lines)

    def test_each_worker_of_a_pool_has_a_lease_of_its_own(self) -> None:
        output = self.run_example('pool.py', '2', '4')
        self.assertEqual(re.findall(r'^result (\d+)', output, re.M), [str(n * n) for n in range(4)])
        rows = re.findall(r'^lease (\d+), HSA_CU_MASK=(\S+)', output, re.M)
        self.assertEqual(len({lease for lease, _ in rows}), 2, output)
        self.assertEqual(len({mask for _, mask in rows}), 2)

    def test_a_pool_ends_when_a_worker_gets_no_lease(self) -> None:
        done = rig.python(str(EXAMPLES / 'pool.py'), '2', '4',
                          env={**os.environ, 'GPUARB_BUS_ADDRESS': 'unix:path=/nonexistent'})
        self.assertEqual((done.returncode, done.stdout), (1, ''))
        self.assertIn('unix:path=/nonexistent', done.stderr)

    def test_a_server_is_stopped_with_its_lease(self) -> None:
        for state in ('revoking', 'ending'):
            with self.subTest(state), subprocess.Popen(
                    [sys.executable, EXAMPLES / 'llama-server.py', '50%', 'sleep', '1000'],
                    stdout=subprocess.PIPE, start_new_session=True, text=True) as server, \
                    gpuarb.Arbiter() as arbiter, contextlib.ExitStack() as kill:
                kill.callback(os.killpg, server.pid, signal.SIGKILL)
                assert server.stdout
                self.assertEqual(server.stdout.readline(), '30 CUs of GPU 0000:03:00.0\n')
                info, = arbiter.snapshot().leases
                if state == 'revoking':
                    arbiter.revoke(info.id, 60, 'maintenance')
                else:
                    arbiter.release(info.id)
                self.assertEqual(server.wait(rig.SECONDS), -signal.SIGTERM & 0xff)
                kill.pop_all()
                self.assertIn(state, server.stdout.read())

    def check_no_gpu(self, cus: str) -> None:
        """Of a notebook that asks for so many CUs."""
        code = f'exec(open("{EXAMPLES}/jupyter-startup.py").read()); ' \
               'print([os.environ["ROCR_VISIBLE_DEVICES"]])'
        done = rig.python('-c', code, env={**os.environ, 'NOTEBOOK_CUS': cus})
        self.assertEqual(done.stdout, "['']\n", done.stderr)

    def test_a_notebook_without_a_lease_has_no_gpu(self) -> None:
        self.assertIn('15 CUs', self.run_example('jupyter-startup.py'))
        self.check_no_gpu('1000')
        self.check_no_gpu('abc')

    def test_a_notebook_gets_a_share_of_gpus_that_differ(self) -> None:
        machine = rig.Machine('radeon-vii,v620')
        self.addCleanup(machine.close)
        with rig.variables(GPUARB_BUS_ADDRESS=machine.address):
            self.assertIn('18 CUs', self.run_example('jupyter-startup.py'))


if __name__ == '__main__':
    rig.main()
