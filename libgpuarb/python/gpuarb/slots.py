# SPDX-License-Identifier: LGPL-2.1-or-later
"""The hardware queue slots of a GPU."""

from ctypes import c_uint, c_void_p
from dataclasses import dataclass
from typing import Tuple

from .handle import Handle
from .library import copied, lib, rows_of
from .request import argument


@dataclass(frozen=True)
class QueueSlot:
    """A hardware queue slot. The members after `active` are 0 or '' if no queue is in it."""
    xcc: int
    pipe: int
    queue: int
    active: bool
    vmid: int
    priority: int
    doorbell: int
    pid: int
    lease: int
    command: str


@dataclass(frozen=True)
class Slots:
    """The queue slots of one GPU at one moment."""
    slots: Tuple[QueueSlot, ...]
    time: float  # in seconds of time.CLOCK_BOOTTIME
    queues: int  # the compute queues on the GPU
    without: int  # of them: in no slot


def _copy(pointer: c_void_p) -> Slots:
    without = c_uint()
    queues = lib.gpuarb_slots_queues(pointer, without)
    slots = tuple(copied(QueueSlot, row) for row in rows_of(lib.gpuarb_slots_get, pointer))
    return Slots(slots, lib.gpuarb_slots_usec(pointer) / 1e6, queues, without.value)


def read_slots(handle: Handle, gpu: str) -> Slots:
    return handle.read(lib.gpuarb_read_slots, lib.gpuarb_slots_free, _copy, argument('gpu', gpu))
