#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the package for Python beside libgpuarb in C, and gpuarb-exporter with many leases that wait.

    bench-python.py [LEASES...]

Environment: as for the tests in tests/python; GPUARB_EXPORTER is gpuarb-exporter. Prints a table and JSON.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Dict, List

sys.path.insert(0, str(Path(__file__).parents[1] / 'python'))
import rig  # noqa: E402

ROUNDS = 300
FLOOR = r'''
#include <stdio.h>
#include <time.h>
#include "libgpuarb/gpuarb.h"
int main(void)
{
	struct gpuarb_want want = GPUARB_WANT_INIT;
	struct gpuarb *gpuarb = NULL;
	want.cus = 15;
	if (gpuarb_open(&gpuarb) < 0)
		return 1;
	for (int i = 0; i < %d; i++) {
		struct gpuarb_lease *lease = NULL;
		struct timespec from, to;
		clock_gettime(CLOCK_MONOTONIC, &from);
		if (gpuarb_reserve(gpuarb, &want, 1, NULL, &lease) < 0)
			return 1;
		gpuarb_lease_close(lease);
		clock_gettime(CLOCK_MONOTONIC, &to);
		printf("%%ld\n", (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000);
	}
	gpuarb_close(gpuarb);
	return 0;
}
'''


def in_c() -> List[float]:
    """Microseconds of each gpuarb_reserve() and gpuarb_lease_close()."""
    library = os.environ['LD_LIBRARY_PATH'].split(':')[0]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, 'floor.c').write_text(FLOOR % ROUNDS)
        subprocess.run(['cc', '-O2', f'-I{rig.SOURCE}', '-o', f'{folder}/floor', f'{folder}/floor.c',
                        f'{library}/libgpuarb.so.0'], check=True)
        done = subprocess.run([f'{folder}/floor'], check=True, capture_output=True, text=True)
    return [float(line) for line in done.stdout.split()]


def timed(function: Callable[[], object], rounds: int) -> List[float]:
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        found.append((time.perf_counter() - start) * 1e6)
    return found


def in_python() -> List[float]:
    import gpuarb

    with gpuarb.Arbiter() as arbiter:
        return timed(lambda: arbiter.reserve(cus=15).close(), ROUNDS)


def imports(package: str) -> List[float]:
    """Microseconds of a Python that imports a package, which was compiled to byte code, and ends."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, 'PYTHONPYCACHEPREFIX': cache, 'PYTHONDONTWRITEBYTECODE': ''}
        return timed(lambda: subprocess.run([sys.executable, '-c', f'import {package}'], check=True,
                                            env=environment), 16)[1:]


def cpu(pid: int) -> float:
    """Microseconds of CPU time that all threads of a process have used."""
    return sum(int(task.joinpath('schedstat').read_text().split()[0])
               for task in Path(f'/proc/{pid}/task').iterdir()) / 1e3


def scrapes(machine: rig.Machine, numbers: List[int], rows: Dict[str, List[float]]) -> Dict[str, int]:
    """Scrape times with so many leases, of which all but one wait, and the CPU time in them of the
    programs. Returns the sizes."""
    import gpuarb
    import importlib
    exporter_test = importlib.import_module('test-exporter')

    assert machine.daemon
    sizes: Dict[str, int] = {}
    leases: List[gpuarb.Lease] = []
    exporter = exporter_test.Exporter()
    with gpuarb.Arbiter() as arbiter:
        for number in numbers:
            while len(leases) < number:
                leases.append(arbiter.reserve_start(cus=60, wait=3600, name=f'bench-{len(leases)}'))
            rows[f'snapshot in Python, {number} leases'] = timed(arbiter.snapshot, 5)
            programs = {'gpuarbd': machine.daemon.pid, 'gpuarb-exporter': exporter.process.pid,
                        'dbus-daemon': machine.bus.pid}
            for _ in range(5):
                time.sleep(1.1)  # scrapes within a second share a snapshot
                before = {program: cpu(pid) for program, pid in programs.items()}
                found = timed(lambda: sizes.update({str(number): len(exporter.get()[1])}), 1)
                rows.setdefault(f'scrape, {number} leases', []).extend(found)
                for program, pid in programs.items():
                    rows.setdefault(f'CPU time of {program}, {number} leases', []).append(
                        cpu(pid) - before[program])
            rows[f'scrape of the same snapshot, {number} leases'] = timed(exporter.get, 20)
    exporter.close()
    for lease in leases:
        lease.close()
    return sizes


def main() -> None:
    numbers = [int(word) for word in sys.argv[1:]] or [10, 1000, 4096]
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    machine = rig.Machine(configuration='[daemon]\nmax-leases-per-user = 4096\nmax-holders = 8192\n')
    os.environ['GPUARB_BUS_ADDRESS'] = machine.address
    rows = {'python3 -c pass (import sys)': imports('sys'), 'import gpuarb': imports('gpuarb'),
            'reserve and close in C': in_c(), 'reserve and close in Python': in_python()}
    sizes = scrapes(machine, numbers, rows) if os.environ.get('GPUARB_EXPORTER') else {}
    machine.close()

    print(f'{"":44} {"least":>9} {"p50":>9} {"p90":>9}  microseconds')
    figures = {}
    for name, row in rows.items():
        p50, p90 = statistics.median(row), statistics.quantiles(row, n=10)[-1]
        figures[name] = {'least': min(row), 'p50': p50, 'p90': p90, 'n': len(row)}
        print(f'{name:44} {min(row):9.0f} {p50:9.0f} {p90:9.0f}')
    print(json.dumps({'python': figures, 'scrape bytes': sizes}))


if __name__ == '__main__':
    main()
