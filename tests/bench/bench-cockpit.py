#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the page for Cockpit in Chromium with many leases that wait, beside the page with none.

    bench-cockpit.py [LEASES...]

load: from the request for the page until all leases are shown. update: from the call that reserves
a lease until the page shows it. render: the page drawn again. Environment: as for tests/python.
"""

import contextlib
import json
import os
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Dict, List

sys.path.insert(0, str(Path(__file__).parents[1] / 'python'))
import browser  # noqa: E402
import rig  # noqa: E402

import gpuarb  # noqa: E402

ROUNDS = 5
LIMITS = '[daemon]\nmax-leases = 8192\nmax-leases-per-user = 8192\nmax-holders = 16384\n'
WAIT = '''const [text, done] = arguments;
const look = () => document.getElementById('content').innerText.includes(text)
    ? done() : requestAnimationFrame(look);
look();'''
RENDER = '''const start = performance.now();
document.getElementById('filter').dispatchEvent(new Event('input'));
document.body.getBoundingClientRect();
return performance.now() - start;'''


def milliseconds(start: float) -> float:
    return 1000 * (time.monotonic() - start)


def load(chromium: Any, cockpit: browser.Cockpit, text: str) -> float:
    start = time.monotonic()
    chromium.get(cockpit.url)
    chromium.execute_async_script(WAIT, text)
    return milliseconds(start)


def update(chromium: Any, name: str) -> float:
    start = time.monotonic()
    with gpuarb.reserve(cus=15, gpu=1, name=name):
        chromium.execute_async_script(WAIT, name)
        return milliseconds(start)


def measure(chromium: Any, cockpit: browser.Cockpit, leases: int) -> Dict[str, Any]:
    with contextlib.ExitStack() as stack, gpuarb.Arbiter() as arbiter:
        stack.enter_context(gpuarb.reserve(cus=60, gpu=0, name='first'))
        for _ in range(leases):
            stack.enter_context(arbiter.reserve_start(cus=60, gpu=0, wait=3600))
        text = f'and {leases - 50} more' if leases > 50 else 'first'
        loads = [load(chromium, cockpit, text) for _ in range(ROUNDS)]
        updates = [update(chromium, f'new{i}') for i in range(ROUNDS)]
        renders = [chromium.execute_script(RENDER) for _ in range(ROUNDS)]
    return {'leases': leases, 'load_ms': round(statistics.median(loads)),
            'update_ms': round(statistics.median(updates)),
            'render_ms': round(statistics.median(renders), 1)}


def main(counts: List[int]) -> None:
    lacks = browser.missing()
    if lacks:
        print(f'skipped: no {lacks}')
        sys.exit(77)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    machine = rig.Machine('radeon-vii,v620', configuration=LIMITS)
    cockpit = browser.Cockpit(machine.address)
    chromium = browser.start_browser()
    chromium.set_script_timeout(rig.SECONDS)
    with contextlib.ExitStack() as stack:
        stack.callback(machine.close)
        stack.callback(cockpit.close)
        stack.callback(chromium.quit)
        os.environ['GPUARB_BUS_ADDRESS'] = machine.address
        browser.open_page(chromium, cockpit)
        rows = [measure(chromium, cockpit, n) for n in [0, *counts]]
    for row in rows:
        row['load_ratio'] = round(row['load_ms'] / rows[0]['load_ms'], 2)
        row['update_ratio'] = round(row['update_ms'] / rows[0]['update_ms'], 2)
    print('leases    load  update  render  load and update beside none')
    for row in rows:
        print('%6d %4d ms %4d ms %4.1f ms  %.2f %.2f' % (
            row['leases'], row['load_ms'], row['update_ms'], row['render_ms'], row['load_ratio'],
            row['update_ratio']))
    print(json.dumps({'bench': 'cockpit', 'rows': rows}))


if __name__ == '__main__':
    main([int(n) for n in sys.argv[1:]] or [1000])
