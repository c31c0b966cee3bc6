#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes one page with the tables of benchmarks, and a drawing of how they compare with their floors.

    page.py PAGE OUTPUT...

OUTPUT: what bench-NAME printed, in a file NAME.txt: a table, and JSON in the last line that is not empty.
"""

import html
import json
import math
import os
import platform
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple

BAR = 360  # pixels
ROW = 22
RATIO_MAX = 10000.0


class Measure(NamedTuple):
    """A figure beside the floor that was measured in the same run."""
    label: str
    value: float
    floor: float
    unit: str


def of_pair(result: Any) -> Iterator[Measure]:
    yield Measure('Reserve and Release, beside two Pings over the bus', result['pair_p50_us'],
                  2 * result['ping_p50_us'], 'us')


def of_run(result: Any) -> Iterator[Measure]:
    def end(how: str) -> float:
        return float(result[how]['end_p50_us'])
    floor = end('env') + end('libraries') - end('plain') + result['connection_p50_us']
    for how in ('fixed', 'adaptable'):
        yield Measure(f'run --{how}, beside env, its libraries and a first call', end(how), floor, 'us')


def of_life(result: Any) -> Iterator[Measure]:
    for key, label in (('holder', 'end of a lease after its holder'),
                       ('bound', 'end of a lease after its process'),
                       ('wake', 'grant to a waiting lease')):
        yield Measure(label, result[f'{key}_p50_ns'] / 1000, result[f'{key}_floor_p50_ns'] / 1000, 'us')


def of_memory(result: Any) -> Iterator[Measure]:
    yield Measure(f"memory with {result['leases']} leases, beside none", result['full_kib'],
                  result['empty_kib'], 'KiB')


def of_flood(result: Any) -> Iterator[Measure]:
    idle = {row['service']: row['p99_us'] for row in result if row['connections'] == 0}
    for row in result:
        if row['connections'] > 0:
            yield Measure(f"p99 of another user in a flood of {row['connections']}: {row['service']}",
                          row['p99_us'], idle[row['service']], 'us')


def of_python(result: Any) -> Iterator[Measure]:
    p50 = {name: row['p50'] for name, row in result['python'].items()}
    yield Measure('reserve in Python, beside C', p50['reserve and close in Python'],
                  p50['reserve and close in C'], 'us')
    yield Measure('import gpuarb, beside an empty program', p50['import gpuarb'],
                  p50['python3 -c pass (import sys)'], 'us')


MEASURES: Dict[str, Callable[[Any], Iterator[Measure]]] = {
    'pair': of_pair, 'run': of_run, 'life': of_life, 'memory': of_memory, 'flood': of_flood,
    'python': of_python,
}


def width(ratio: float) -> float:
    """Logarithmic: 1 to RATIO_MAX."""
    return BAR * math.log10(min(max(ratio, 1.0), RATIO_MAX)) / math.log10(RATIO_MAX)


def draw(measures: List[Measure]) -> str:
    height = ROW * (len(measures) + 1)
    left = 24 + 7 * max(len(measure.label) for measure in measures)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + BAR + 300}" height="{height}" '
             'font-family="sans-serif" font-size="12" fill="#222222">',
             f'<rect width="100%" height="100%" fill="white"/><text x="{left}" y="15">times the floor '
             '(logarithmic)</text>']
    for i, measure in enumerate(measures, 1):
        ratio = measure.value / measure.floor
        y = ROW * i
        parts.append(
            f'<text x="{left - 8}" y="{y + 15}" text-anchor="end">{html.escape(measure.label)}</text>'
            f'<rect x="{left}" y="{y + 3}" width="{width(ratio) + 2:.1f}" height="{ROW - 8}" fill="#4477aa"/>'
            f'<text x="{left + width(ratio) + 8:.1f}" y="{y + 15}">{ratio:.2f}: {measure.value:.1f} '
            f'{measure.unit}, floor {measure.floor:.1f} {measure.unit}</text>')
    return '\n'.join(parts + ['</svg>'])


def main() -> None:
    measures: List[Measure] = []
    tables: List[str] = []
    for path in map(Path, sys.argv[2:]):
        lines = path.read_text().rstrip().split('\n')
        if path.stem in MEASURES:
            measures += MEASURES[path.stem](json.loads(lines[-1]))
        table = '\n'.join(line for line in lines if not line.startswith(('{', '['))).rstrip()
        tables.append(f'<h2>{html.escape(path.stem)}</h2>\n<pre>{html.escape(table)}</pre>')
    machine = f'Linux {platform.release()}, {os.cpu_count()} processors'
    Path(sys.argv[1]).write_text('\n'.join([
        '<!DOCTYPE html>', '<meta charset="utf-8">', '<title>Benchmarks of gpuarb</title>',
        '<h1>Benchmarks of gpuarb</h1>', f'<p>{html.escape(machine)}</p>',
        draw(measures) if measures else '', *tables, '']))


main()
