#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A pool of processes in which each worker has a lease of its own. A Ray actor does the same in its
__init__() as start() does here.

    pool.py WORKERS TASKS
"""

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.synchronize import Barrier
from typing import List

import gpuarb

REQUEST = gpuarb.request(cus='25%', queues=3, name='worker', wait=60)
leases: List[gpuarb.Lease] = []


def start(all_ready: Barrier) -> None:
    """In each worker, before its GPU runtime starts. The lease ends with the worker. An exception
    ends the whole pool; multiprocessing.Pool would start another worker, again and again."""
    leases.append(gpuarb.reserve(REQUEST))
    leases[0].set_environment()
    # With its end at once: lines of two workers must not mix.
    print(f'lease {leases[0].id}, HSA_CU_MASK={os.environ["HSA_CU_MASK"]}\n', end='', flush=True)
    all_ready.wait()


def work(task: int) -> int:
    return task * task


def main() -> None:
    workers, tasks = int(sys.argv[1]), int(sys.argv[2])
    # A worker must not inherit a GPU runtime that runs: "spawn", not "fork".
    context = multiprocessing.get_context('spawn')
    all_ready = context.Barrier(min(workers, tasks))  # a worker is started for a task
    with ProcessPoolExecutor(workers, context, start, (all_ready,)) as pool:
        try:
            for result in pool.map(work, range(tasks)):
                print(f'result {result}', flush=True)
        except BrokenProcessPool:
            sys.exit('pool.py: a worker has no lease, or ended: its exception is above')


if __name__ == '__main__':
    main()
