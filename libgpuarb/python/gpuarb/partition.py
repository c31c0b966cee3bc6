# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a lease or a plan has on one GPU."""

from dataclasses import dataclass
from typing import Any, Tuple

from .library import copied


@dataclass(frozen=True)
class Partition:
    """The part of a lease on one GPU. gpuarb.h explains struct gpuarb_partition."""
    gpu: str  # PCI address
    kfd_gpu_id: int  # 0: a simulated GPU
    cus: int
    cus_asked: int
    effective_cus: int
    cu_mask: Tuple[int, ...]  # words of 32 bits in KFD order: bit i % 32 of word i / 32
    shader_engines: Tuple[int, ...]
    queues: int
    streams: int
    processes: int
    sdma_queues: int
    sdma_xgmi_queues: int
    vram: int  # bytes
    priority: int  # 0 to 15
    paused: bool
    exclusive: bool
    tier: str  # 'cooperative', 'verified', 'capped', 'hardware'
    gaps: Tuple[str, ...]  # what is not isolated
    priorities_seen: Tuple[int, ...]


def partition_of(raw: Any) -> Partition:
    return copied(Partition, raw, cu_mask=tuple(raw.cu_mask[:raw.cu_mask_words]))


def partitions_of(array: Any, n: int) -> Tuple[Partition, ...]:
    return tuple(partition_of(array[i]) for i in range(n))
