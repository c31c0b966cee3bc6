#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The examples in docs/examples/python, with gpuarbd and a simulated Radeon VII. The stand-ins have
the interface of packages that are not in Debian."""

import os
import re
import subprocess
import sys
from pathlib import Path

import rig

import gpuarb

EXAMPLES = rig.SOURCE / 'docs/examples/python'


class Examples(rig.MachineTest):
    def run_example(self, name: str, *arguments: str) -> str:
        path = f'{Path(__file__).with_name("stand-ins")}:{os.environ["PYTHONPATH"]}'
        done = rig.python(str(EXAMPLES / name), *arguments,
                          env={**os.environ, 'PYTHONPATH': path})
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        return done.stdout

    def test_inference_runs_beside_training(self) -> None:
        lines = self.run_example('inference-beside-training.py', '3').split('\n')
        self.assertIn('training: done', lines)
        self.assertIn('inference: 3 requests on 15 CUs', lines)

    def test_each_worker_of_a_pool_has_a_lease_of_its_own(self) -> None:
        output = self.run_example('pool.py', '2', '4')
        self.assertEqual(re.findall(r'^(\d+): ', output, re.M), [str(n * n) for n in range(4)])
        rows = set(re.findall(r'lease (\d+), HSA_CU_MASK=(\S+)', output))
        self.assertEqual(len({lease for lease, _ in rows}), len({mask for _, mask in rows}))

    def test_a_server_is_stopped_when_its_lease_is_revoked(self) -> None:
        server = subprocess.Popen(
            [sys.executable, EXAMPLES / 'llama-server.py', '50%', 'sleep', '1000'],
            stdout=subprocess.PIPE, text=True)
        assert server.stdout
        self.assertEqual(server.stdout.readline(), '30 CUs of GPU 0000:03:00.0\n')
        with gpuarb.Arbiter() as arbiter:
            info, = arbiter.snapshot().leases
            arbiter.revoke(info.id, 60, 'maintenance')
        self.assertIn('maintenance', server.stdout.read())
        server.stdout.close()
        self.assertEqual(server.wait(rig.SECONDS), -15 & 0xff)

    def test_a_notebook_without_a_lease_has_no_gpu(self) -> None:
        self.assertIn('15 CUs', self.run_example('jupyter-startup.py'))
        code = f'exec(open("{EXAMPLES}/jupyter-startup.py").read()); ' \
               'print([os.environ["ROCR_VISIBLE_DEVICES"]])'
        done = rig.python('-c', code, env={**os.environ, 'NOTEBOOK_CUS': '1000'})
        self.assertEqual(done.stdout, "['']\n")


if __name__ == '__main__':
    rig.main()
