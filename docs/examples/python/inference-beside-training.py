#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Inference with PyTorch on a quarter of a GPU that nobody disturbs, beside training on what
is left.

    inference-beside-training.py REQUESTS
"""

import sys

import gpuarb

INFERENCE = gpuarb.request(cus='25%', queues=4, class_='guaranteed', name='inference', wait=60)
TRAINING = gpuarb.request(cus='75%', cus_min=1, queues=5, class_='besteffort', name='training',
                          wait=60)
SIZE = 1024


@gpuarb.leased(INFERENCE, this_process=True)
def infer(lease: gpuarb.Lease, requests: int) -> None:
    import torch  # after the lease is applied: its runtime reads the variables once

    weights = torch.randn(SIZE, SIZE, device='cuda')
    for _ in range(requests):
        torch.randn(1, SIZE, device='cuda') @ weights
    torch.cuda.synchronize()
    print(f'inference: {requests} requests on {lease.cus} CUs', flush=True)


def train() -> None:
    """Runs in a program of its own, whose environment has the lease."""
    import torch

    weights = torch.randn(SIZE, SIZE, device='cuda')
    for _ in range(100):
        weights = weights @ weights
    torch.cuda.synchronize()
    print('training: done', flush=True)


def main() -> None:
    if sys.argv[1] == 'train':
        train()
        return
    with gpuarb.reserve(TRAINING) as lease:
        training = gpuarb.popen([sys.executable, __file__, 'train'], lease)
    infer(int(sys.argv[1]))
    sys.exit(training.wait())


if __name__ == '__main__':
    main()
