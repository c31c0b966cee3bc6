# SPDX-License-Identifier: LGPL-2.1-or-later
"""What happened since gpuarbd was started."""

from ctypes import c_void_p
from dataclasses import dataclass
from typing import Dict, Tuple

from .handle import Handle
from .library import copied, lib, rows_of, text


@dataclass(frozen=True)
class TenantCounters:
    """What happened to the requests and leases of a tenant."""
    tenant: str  # '': callers that match none, or all tenants beyond 256
    grants: int
    waits: int  # leases that began to wait
    revocations: int  # leases that their holders did not end
    preemptions: int  # leases that are revoked for a waiting one
    moves: int  # to other CUs, for another lease
    drifts: int  # times that a lease began to use more than it was granted
    refusals: Dict[str, int]  # by reason


@dataclass(frozen=True)
class Duration:
    """How often something took how long."""
    bounds: Tuple[float, ...]  # in seconds
    counts: Tuple[int, ...]  # up to each bound and above the one before it; the last one: the rest
    sum: float  # in seconds


@dataclass(frozen=True)
class Counters:
    """What happened since gpuarbd was started."""
    since: float  # in seconds of time.time()
    tenants: Tuple[TenantCounters, ...]
    durations: Dict[str, Duration]  # 'decision', 'activation', 'wait'


def _copy(pointer: c_void_p) -> Counters:
    tenants = tuple(
        copied(TenantCounters, row, refusals={
            text(refused.reason): refused.count for refused in row.refusals[:row.n_refusals]})
        for row in rows_of(lib.gpuarb_counters_get, pointer))
    durations = {
        text(row.name): Duration(tuple(bound / 1e6 for bound in row.bounds_usec[:row.n_bounds]),
                                 tuple(row.counts[:row.n_counts]), row.sum_usec / 1e6)
        for row in rows_of(lib.gpuarb_counters_duration, pointer)}
    return Counters(lib.gpuarb_counters_since(pointer), tenants, durations)


def read_counters(handle: Handle) -> Counters:
    return handle.read(lib.gpuarb_read_counters, lib.gpuarb_counters_free, _copy)
