#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Masked streams and masked processes with AMD's HIP, on the emulated driver, whose state has the
mask of every queue. test-hip.sh makes the machine and runs each class in its own process."""

import ctypes
import json
import os
import sys
import types
import unittest
from typing import Any, Dict, List, Tuple

import rig

import gpuarb
from gpuarb import hip

STATE = '/sys/kernel/debug/kfdsim/state'
RADEON_VII, V620 = 0, 1


def queues() -> List[Dict[str, Any]]:
    """The queues of this process, as the driver has them."""
    with open(STATE, encoding='utf-8') as file:
        state = json.load(file)
    return [queue for process in state['processes'] if process['pid'] == os.getpid()
            for queue in process['queues']]


def bits(partition: gpuarb.Partition) -> int:
    return sum(word << 32 * i for i, word in enumerate(partition.cu_mask))


def work(library: hip.Hip, stream: int) -> bytes:
    """Copies to the GPU and back with a stream of HIP."""
    library._library.hipMalloc.argtypes = (ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t)
    library._library.hipMemcpyAsync.argtypes = (
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
    memory = ctypes.c_void_p()
    source, back = ctypes.create_string_buffer(b'gpuarb', 65536), ctypes.create_string_buffer(65536)
    assert library._library.hipMalloc(ctypes.byref(memory), 65536) == 0
    assert library._library.hipMemcpyAsync(memory, source, 65536, 1, stream) == 0
    assert library._library.hipMemcpyAsync(back, memory, 65536, 2, stream) == 0
    library.check('hipStreamSynchronize', stream)
    return back.value


def masks() -> List[int]:
    """The masks of the compute queues of this process; 0: none."""
    return [int(queue['mask'] or '0', 16) for queue in queues()
            if queue['type'] == 'compute' and queue['alive']]


class Streams(unittest.TestCase):
    def test_streams_have_the_mask_of_the_lease_and_follow_it(self) -> None:
        with gpuarb.reserve(cus='50%', gpu=RADEON_VII, queues=4) as lease:
            with lease.stream() as stream, lease.stream() as other:
                self.assertNotEqual(stream.handle, other.handle)
                # HIP may keep the queues of streams that were destroyed.
                self.assertEqual(masks()[-2:], [bits(lease.partition)] * 2)
                self.assertEqual(work(stream._hip, stream.handle), b'gpuarb')
                stream.synchronize()

                lease.resize(gpuarb.Want(cus=15))
                self.assertEqual(lease.apply(), len(masks()))
                self.assertEqual(set(masks()), {bits(lease.partition)})
                lease.mask_queue(lease.queue_ids()[1], mask=[lease.partition.cu_mask[0], 0])
                self.assertEqual(masks()[1], lease.partition.cu_mask[0])

                info, = (i for i in gpuarb.snapshot().leases if i.id == lease.id)
                self.assertEqual((info.owner_pid, info.drift), (os.getpid(), ()))
                with self.assertRaises(gpuarb.RuntimeStarted), lease.in_this_process():
                    pass
            self.assertEqual(stream.handle, 0)

    def test_an_agent_follows_a_shrink(self) -> None:
        asked = gpuarb.request(cus=15, cus_max=60, gpu=RADEON_VII, queues=4, class_='besteffort',
                               adaptable=True)
        with gpuarb.reserve(asked) as lease, lease.stream():
            lease.start_agent()
            with gpuarb.reserve(cus=30, gpu=RADEON_VII, class_='guaranteed', wait=rig.SECONDS):
                lease.dispatch()
                self.assertLessEqual(lease.cus, 30)
                self.assertEqual(set(masks()), {bits(lease.partition)})
                lease.check_agent()

    def test_pytorch_receives_the_stream_and_the_device(self) -> None:
        made: List[Tuple[int, int]] = []

        class ExternalStream:
            """The interface of torch.cuda.ExternalStream: PyTorch is not in Debian."""
            def __init__(self, stream: int, device: int) -> None:
                made.append((stream, device))

        cuda = types.SimpleNamespace(ExternalStream=ExternalStream, is_available=lambda: True)
        modules: Any = {'torch': types.SimpleNamespace(cuda=cuda), 'torch.cuda': cuda}
        sys.modules.update(modules)
        with gpuarb.reserve(cus=15, gpu=RADEON_VII, queues=4) as lease, lease.stream() as stream:
            self.assertIsInstance(stream.torch(), ExternalStream)
            self.assertEqual(made, [(stream.handle, 0)])


class Visible(unittest.TestCase):
    def test_a_gpu_with_wgps_is_found_among_those_that_hip_sees(self) -> None:
        os.environ['HIP_VISIBLE_DEVICES'] = '1'
        with gpuarb.reserve(cus='25%', gpu=V620, queues=3) as lease, lease.stream() as stream:
            self.assertEqual(stream.device, 0)
            self.assertEqual(masks(), [bits(lease.partition)] * 2)
        with gpuarb.reserve(cus=15, gpu=RADEON_VII, queues=4) as lease:
            with self.assertRaises(gpuarb.NoSuchGpu):
                lease.stream()


class Process(unittest.TestCase):
    def test_a_lease_in_this_process_masks_every_queue(self) -> None:
        with gpuarb.reserve(cus=15, gpu=RADEON_VII, queues=4) as lease:
            with lease.in_this_process():
                library = hip.Hip()
                stream = ctypes.c_void_p()
                library._library.hipStreamCreate(ctypes.byref(stream))
                self.assertEqual(work(library, stream.value or 0), b'gpuarb')
                self.assertTrue(hip.runtime_has_started())
                self.assertEqual(set(masks()), {bits(lease.partition)})


if __name__ == '__main__':
    rig.main()
