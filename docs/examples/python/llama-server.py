#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a server of llama.cpp, or another one, on a share of a GPU, and stops it when its lease is
revoked or ends.

    llama-server.py SHARE COMMAND [ARGUMENT...]
    llama-server.py 50% llama-server -m model.gguf -ngl 99 --port 8080
"""

import sys

import gpuarb


def is_lost(lease: gpuarb.Lease) -> bool:
    """Waits a second for the lease to be revoked or to end."""
    for status in lease.changes(timeout=1):
        if status.state in ('revoking', 'ending'):
            print(f'{status.state}: {status.reason}', flush=True)
            return True
    return lease.state == 'ending'


def main() -> int:
    share, command = sys.argv[1], sys.argv[2:]
    try:
        # GPU_MAX_HW_QUEUES of HIP is 4 by default, and its runtime has one queue more.
        lease = gpuarb.reserve(cus=share, queues=5, class_='guaranteed', name='llama', wait=300)
    except gpuarb.Error as error:
        for refusal in error.refusals:
            print(f'{refusal.gpu}: {refusal.reason}: {refusal.free} of {refusal.total} free',
                  file=sys.stderr)
        print(f'no lease: {error}', file=sys.stderr)
        return 3

    with lease, gpuarb.popen(command, lease) as server:
        print(f'{lease.cus} CUs of GPU {lease.partition.gpu}', flush=True)
        while server.poll() is None and not is_lost(lease):
            pass
        server.terminate()
        return server.wait()


if __name__ == '__main__':
    sys.exit(main())
