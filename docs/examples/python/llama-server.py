#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a server of llama.cpp, or another one, on a share of a GPU, and stops it in time when its
lease is revoked.

    llama-server.py SHARE COMMAND [ARGUMENT...]
    llama-server.py 50% llama-server -m model.gguf -ngl 99 --port 8080
"""

import signal
import sys
import time

import gpuarb


def main() -> int:
    share, command = sys.argv[1], sys.argv[2:]
    try:
        # Without a number of queues, as many as HIP uses by itself.
        lease = gpuarb.reserve(cus=share, queues=5, class_='guaranteed', name='llama', wait=300)
    except gpuarb.Error as error:
        for refusal in error.refusals:
            print(f'{refusal.gpu}: {refusal.reason}: {refusal.free} of {refusal.total} free',
                  file=sys.stderr)
        print(f'no lease: {error}', file=sys.stderr)
        return 3

    with lease, gpuarb.popen(command, lease) as server:
        print(f'{lease.cus} CUs of GPU {lease.partition.gpu}', flush=True)
        while server.poll() is None:
            for status in lease.changes(timeout=1):
                if status.state == 'revoking':
                    left = (status.deadline or 0) - time.clock_gettime(time.CLOCK_BOOTTIME)
                    print(f'revoked: {status.reason}; {left:.0f} s left', flush=True)
                    server.send_signal(signal.SIGTERM)
                    break
                if status.state == 'ending':
                    break
        return server.returncode


if __name__ == '__main__':
    sys.exit(main())
