# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a request would get, without reserving anything."""

import ctypes
import errno
from ctypes import c_char_p, c_size_t
from dataclasses import dataclass
from typing import Any, Optional, Tuple, Type

from . import library
from .errors import (Error, NeverFits, NoCapacity, NotPermitted, QuotaExceeded, Refusal,
                     last_refusals)
from .handle import Handle
from .library import copied, lib, text
from .partition import Partition, partitions_of


@dataclass(frozen=True)
class Shrink:
    """An adaptable lease that would get a smaller mask on one GPU."""
    lease: int
    gpu: str
    from_cus: int
    to_cus: int


@dataclass(frozen=True)
class Plan:
    """The decision about a request. It is true if the lease would be granted."""
    result: str  # 'granted', 'waiting' or 'refused'
    partitions: Tuple[Partition, ...]
    refusals: Tuple[Refusal, ...]
    shrinks: Tuple[Shrink, ...] = ()
    revokes: Tuple[int, ...] = ()  # leases that would be revoked
    pauses: Tuple[int, ...] = ()  # leases that would be paused while the lease is active
    moves: Tuple[int, ...] = ()  # leases that would be given as many other CUs
    within: Optional[float] = None  # seconds until the grant at the latest; None: no limit

    def __bool__(self) -> bool:
        return self.result == 'granted'

    def check(self) -> 'Plan':
        """Raises what reserve() without `wait` would raise, unless the result is 'granted'."""
        if self:
            return self
        kind, number = _failure(self.refusals)
        raise kind(number, '; '.join(f'{r.gpu}: {r.reason}: {r.hint}' for r in self.refusals)
                   or f'the plan is {self.result}', '', self.refusals)


def _failure(refusals: Tuple[Refusal, ...]) -> Tuple[Type[Error], int]:
    if any(refusal.retry for refusal in refusals) or not refusals:
        return NoCapacity, errno.EBUSY
    reasons = {refusal.reason for refusal in refusals}
    if reasons == {'policy'}:
        return NotPermitted, errno.EACCES
    if reasons <= {'quota', 'policy'}:
        return QuotaExceeded, errno.EDQUOT
    return NeverFits, errno.ENOSPC


def _effects(raw: library.Effects) -> Any:
    known = {'shrinks': tuple(copied(Shrink, row) for row in raw.shrinks[:raw.n_shrinks]),
             'revokes': tuple(raw.revokes[:raw.n_revokes]),
             'within': None if raw.within_usec == library.FOREVER else raw.within_usec / 1e6}
    # A libgpuarb that is older than this package filled in less.
    if raw.size >= ctypes.sizeof(library.Effects):
        known.update(pauses=tuple(raw.pauses[:raw.n_pauses]), moves=tuple(raw.moves[:raw.n_moves]))
    return known


def make_plan(handle: Handle, wants: Any, options: library.Options) -> Plan:
    result, n = c_char_p(), c_size_t()
    with handle.lock:
        handle.call(lib.gpuarb_plan, handle.pointer, wants, len(wants), options, result)
        array = lib.gpuarb_last_plan(handle.pointer, n)
        effects = lib.gpuarb_last_plan_effects(handle.pointer)
        known = _effects(effects.contents) if effects else {}
        return Plan(text(result.value), partitions_of(array, n.value),
                    last_refusals(handle.pointer), **known)
