#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/make-interface: the pages have all of the interface, and their examples of busctl work."""

import importlib.machinery
import importlib.util
import os
import shlex
import shutil
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree
from typing import Any

import rig

PROGRAM = rig.SOURCE / 'docs/make-interface'
XML = rig.SOURCE / 'dbus/org.gpuarb.Arbiter1.xml'


def program() -> Any:
    loader = importlib.machinery.SourceFileLoader('make_interface', str(PROGRAM))
    spec = importlib.util.spec_from_loader('make_interface', loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def page(form: str) -> str:
    return subprocess.run([PROGRAM, XML, form], check=True, capture_output=True, text=True).stdout


class Pages(rig.MachineTest):
    def test_html_is_well_formed_and_has_every_member_and_argument(self) -> None:
        text = ''.join(ElementTree.fromstring(page('html')).itertext())
        named = [element.get('name', '') for element in ElementTree.parse(XML).iter()
                 if element.tag in ('interface', 'method', 'property', 'arg')]
        self.assertGreater(len(named), 80)
        self.assertEqual([name for name in named if name not in text], [])

    @unittest.skipUnless(shutil.which('scdoc'), 'no scdoc')
    def test_the_manual_page_is_accepted_by_scdoc(self) -> None:
        done = subprocess.run(['scdoc'], input=page('man'), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        self.assertIn('ReadSlots', done.stdout)

    @unittest.skipUnless(shutil.which('busctl'), 'no busctl')
    def test_the_examples_of_busctl_work(self) -> None:
        commands = [line for _, text in program().EXAMPLES for line in text.split('\n')]
        for command in commands:
            words = shlex.split(command)
            if words[1] == 'monitor':  # does not end
                continue
            done = subprocess.run(
                [words[0], f'--address={os.environ["GPUARB_BUS_ADDRESS"]}', *words[1:]],
                capture_output=True, text=True, timeout=rig.SECONDS)
            with self.subTest(command):
                self.assertEqual((done.returncode, done.stderr), (0, ''))
        self.assertIn('Plan', ' '.join(commands))


if __name__ == '__main__':
    rig.main()
