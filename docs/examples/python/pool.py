#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A multiprocessing pool in which each worker has a lease of its own. A Ray actor does the same in
its __init__() as start() does here.

    pool.py WORKERS TASKS
"""

import multiprocessing
import os
import sys
from typing import List, Tuple

import gpuarb

REQUEST = gpuarb.request(cus='25%', queues=3, name='worker', wait=60)
leases: List[gpuarb.Lease] = []


def start() -> None:
    """In each worker, before its GPU runtime starts. The lease ends with the worker."""
    leases.append(gpuarb.reserve(REQUEST))
    leases[0].set_environment()


def work(task: int) -> Tuple[int, int, str]:
    return task * task, leases[0].id, os.environ['HSA_CU_MASK']


def main() -> None:
    workers, tasks = int(sys.argv[1]), int(sys.argv[2])
    # A worker must not inherit a GPU runtime that runs: "spawn", not "fork".
    with multiprocessing.get_context('spawn').Pool(workers, start) as pool:
        for result, number, mask in pool.map(work, range(tasks), chunksize=1):
            print(f'{result}: lease {number}, HSA_CU_MASK={mask}', flush=True)


if __name__ == '__main__':
    main()
