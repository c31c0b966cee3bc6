# SPDX-License-Identifier: LGPL-2.1-or-later
"""All GPUs and leases at one moment."""

import ctypes
import math
from ctypes import POINTER, c_char_p, c_size_t, c_void_p
from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

from . import library
from .errors import Process, Refusal, processes_of, refusal_of
from .handle import Handle
from .library import copied, lib, rows_of, text, uid_of
from .partition import Partition, partitions_of


@dataclass(frozen=True)
class Client:
    """A process that has a GPU open through the graphics driver."""
    pid: int
    uid: Optional[int]
    command: str
    lease: int  # 0: none
    draws: bool
    gfx_share: float
    compute_share: float
    dma_share: float
    gfx_nsec: int
    compute_nsec: int
    dma_nsec: int
    vram: int
    gtt: int


@dataclass(frozen=True)
class Cover:
    """The compute queues of one process on a GPU, as their descriptors show them."""
    pid: int
    uid: Optional[int]
    command: str
    lease: int  # 0: none
    queues: int
    cus: int
    outside_cus: int  # that no lease of the process grants
    cu_mask: Tuple[int, ...]
    outside_mask: Tuple[int, ...]


@dataclass(frozen=True)
class Slowdown:
    """How much longer a kernel took beside others: a row of struct gpuarb_slowdown."""
    kind: str
    neighbours: int
    slowdown: int  # percent of the time alone


@dataclass(frozen=True)
class Calibration:
    """What was measured on a GPU. gpuarb.h explains struct gpuarb_calibration."""
    date: str  # '': gpuarbd uses no report
    problem: str
    preemption_usec: int
    slowdowns: Tuple[Slowdown, ...]


@dataclass(frozen=True)
class Gpu:
    """A GPU. gpuarb.h explains struct gpuarb_gpu and the functions gpuarb_view_…() of a GPU."""
    name: str  # PCI address
    device: str
    gfx_target: str
    kfd_gpu_id: int
    xccs: int
    shader_engines: int
    shader_arrays: int
    cus: int
    cus_free: int
    cus_per_shader_engine: Tuple[int, ...]  # (): unknown
    cus_per_shader_array: Tuple[int, ...]
    wgp_mode: bool
    harvest_known: bool
    law: str
    queue_slots: int
    queue_slots_free: int
    process_slots: int
    process_slots_free: int
    pipes: int
    queues_per_pipe: int
    sdma_queues: int
    sdma_xgmi_queues: int
    vram_bytes: int
    vram_free: int
    scheduler: str
    unmanaged: Tuple[Process, ...]
    oversubscribed: bool
    draining: bool
    fairness: Optional[float]
    floor_excess: str
    graphics: str
    clients: Tuple[Client, ...]
    covers: Tuple[Cover, ...]
    masks_observed: Optional[float]  # in seconds of time.CLOCK_BOOTTIME
    unseen: str
    memory: str  # partitions of one card with the same value share it
    pipes_source: str
    driver_events: Tuple[Tuple[str, int], ...]
    law_source: str  # who measured the law, or the target that it is derived from; '': nobody
    law_constant: int  # percent of the time on the whole GPU; 0: unknown
    calibration: Optional[Calibration]  # None: gpuarbd does not tell
    named_only: bool  # policy lets only requests that name it have it
    vram_pressure: bool  # its memory runs short
    system_memory: bool  # vram_bytes is memory of the machine
    barred_for: int  # the waiting lease that it is kept for; 0: none


@dataclass(frozen=True)
class Pauses:
    count: int
    seconds: float  # in those that have ended
    since: Optional[float]  # of the present one, in seconds of time.CLOCK_BOOTTIME


@dataclass(frozen=True)
class Drift:
    """How what is observed of a lease exceeds what it was granted."""
    kind: str
    gpu: str
    granted: int
    observed: int
    since: float  # in seconds of time.CLOCK_BOOTTIME
    pid: int


@dataclass(frozen=True)
class Intruder:
    """A process that disturbs a lease: gpuarb.h explains struct gpuarb_intruder."""
    gpu: str
    pid: int
    uid: Optional[int]
    command: str
    lease: int  # of the process; 0: none
    cus: int
    since: float  # in seconds of time.CLOCK_BOOTTIME
    draws: bool


@dataclass(frozen=True)
class LeaseInfo:
    """A lease of any user. gpuarb.h explains struct gpuarb_lease_info and the functions
    gpuarb_view_…() of a lease."""
    id: int
    name: str
    state: str
    class_: str
    tenant: str
    owner_uid: Optional[int]
    owner_pid: int
    owner_unit: str
    adaptable: bool
    generation: int
    tier: str
    partitions: Tuple[Partition, ...]
    position: int
    reason: str
    deadline: Optional[float]  # in seconds of time.CLOCK_BOOTTIME
    disturbances: int
    waits_for: Optional[Refusal]
    pauses: Pauses
    drift: Tuple[Drift, ...]
    evictions: Pauses
    verified: bool
    capped: bool
    resets: int
    moves: int
    since: Optional[float]  # in seconds of time.CLOCK_BOOTTIME
    queue_refusals: int
    cus_min: Tuple[int, ...]  # of each partition: CUs of its base; 0: the lease is fixed
    alone: bool  # no queue of others covers a CU of it, as far as gpuarbd can read queues
    intruders: Tuple[Intruder, ...]
    uncapped: str  # why the kernel does not cap it although it ought to; '': it does, or need not


@dataclass(frozen=True)
class Snapshot:
    """All GPUs and leases at one moment."""
    version: str  # of gpuarbd
    queue_budgets: str
    tenants: Tuple[str, ...]
    restart_keys: Tuple[str, ...]
    gpus: Tuple[Gpu, ...]
    leases: Tuple[LeaseInfo, ...]  # sorted by id


def _seconds(usec: int) -> Optional[float]:
    return usec / 1e6 if usec else None


def _words(array: Any, n: int) -> Tuple[int, ...]:
    return tuple(array[:n]) if array else ()


def _array(function: Any, view: Any, kind: Any, *args: int) -> Any:
    """The elements of an array that a function counts."""
    array = POINTER(kind)()
    return [array[i] for i in range(function(view, *args, ctypes.byref(array)))]


def _cover(raw: Any) -> Cover:
    return copied(Cover, raw, cu_mask=_words(raw.cu_mask, raw.cu_mask_words),
                  outside_mask=_words(raw.outside_mask, raw.outside_mask_words))


def _facts(kind: Any, view: Any, i: int) -> Dict[str, Any]:
    """What gpuarb_view_NAME() tells of GPU or lease i, for each field NAME with such a function."""
    values: Dict[str, Any] = {}
    for key in kind.__annotations__:
        name = f'gpuarb_view_{key}'
        result, *arguments = library.PROTOTYPES.get(name, (None,))
        if arguments == [c_void_p, c_size_t]:
            value = getattr(lib, name)(view, i)
            values[key] = text(value) if result == c_char_p else value
    return values


def _gpu(view: Any, i: int, raw: Any) -> Gpu:
    engines = raw.xccs * raw.shader_engines
    facts = _facts(Gpu, view, i)
    facts.update(
        cus_per_shader_engine=_words(raw.cus_per_shader_engine, engines),
        cus_per_shader_array=_words(raw.cus_per_shader_array, engines * raw.shader_arrays),
        unmanaged=processes_of(raw.unmanaged, raw.n_unmanaged),
        fairness=None if math.isnan(facts['fairness']) else facts['fairness'],
        clients=tuple(copied(Client, row) for row in rows_of(lib.gpuarb_view_client, view, i)),
        covers=tuple(map(_cover, rows_of(lib.gpuarb_view_cover, view, i))),
        masks_observed=_seconds(facts['masks_observed']),
        driver_events=tuple((text(row.kind), row.count) for row in _array(
            lib.gpuarb_view_driver_events, view, library.DriverEvents, i)),
        calibration=_calibration(facts['calibration']))
    return copied(Gpu, raw, **facts)


def _calibration(pointer: Any) -> Optional[Calibration]:
    if not pointer:
        return None
    raw = pointer.contents
    return copied(Calibration, raw, slowdowns=tuple(
        copied(Slowdown, row) for row in raw.slowdowns[:raw.n_slowdowns]))


def _pauses(pointer: Any) -> Pauses:
    raw = pointer.contents
    return Pauses(raw.count, raw.usec / 1e6, _seconds(raw.since))


def _waits_for(view: Any, i: int) -> Optional[Refusal]:
    facts = POINTER(library.RefusalFacts)()
    raw = lib.gpuarb_view_waits_for(view, i, ctypes.byref(facts))
    return refusal_of(raw.contents, facts) if raw else None


def _lease(view: Any, i: int, raw: Any) -> LeaseInfo:
    facts = _facts(LeaseInfo, view, i)
    facts.update(
        class_=text(raw.lease_class), owner_uid=uid_of(raw.owner_uid),
        partitions=partitions_of(raw.partitions, raw.n_partitions),
        deadline=None if raw.deadline == library.FOREVER else raw.deadline / 1e6,
        waits_for=_waits_for(view, i), pauses=_pauses(lib.gpuarb_view_pause(view, i)),
        drift=tuple(copied(Drift, row, since=row.since / 1e6)
                    for row in rows_of(lib.gpuarb_view_drift, view, i)),
        evictions=_pauses(facts['evictions']), since=_seconds(facts['since']),
        cus_min=tuple(lib.gpuarb_view_cus_min(view, i, j) for j in range(raw.n_partitions)),
        intruders=tuple(copied(Intruder, row, since=row.since / 1e6)
                        for row in rows_of(lib.gpuarb_view_intruder, view, i)))
    return copied(LeaseInfo, raw, **facts)


def _copy(view: Any) -> Snapshot:
    tenants = _array(lib.gpuarb_view_tenants, view, c_char_p)
    restart_keys = _array(lib.gpuarb_view_restart_keys, view, c_char_p)
    gpus = _array(lib.gpuarb_view_gpus, view, library.Gpu)
    leases = _array(lib.gpuarb_view_leases, view, library.LeaseInfo)
    return Snapshot(
        text(lib.gpuarb_view_version(view)), text(lib.gpuarb_view_queue_budgets(view)),
        tuple(map(text, tenants)), tuple(map(text, restart_keys)),
        tuple(_gpu(view, i, raw) for i, raw in enumerate(gpus)),
        tuple(_lease(view, i, raw) for i, raw in enumerate(leases)))


def take_snapshot(handle: Handle) -> Snapshot:
    return handle.read(lib.gpuarb_look, lib.gpuarb_view_free, _copy)
