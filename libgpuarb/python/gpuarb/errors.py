# SPDX-License-Identifier: LGPL-2.1-or-later
"""What can fail: an exception for each error of gpuarbd, with its refusals."""

import errno
from ctypes import c_size_t
from dataclasses import dataclass
from typing import Any, Dict, Optional, Sequence, Tuple, Type

from . import library
from .library import copied, lib, text

_PREFIX = 'org.gpuarb.Arbiter1.Error.'


@dataclass(frozen=True)
class Process:
    """A process that has queues on a GPU and no lease."""
    pid: int
    uid: Optional[int]
    command: str
    queues: int


@dataclass(frozen=True)
class Refusal:
    """Why one GPU does not fit, in numbers. gpuarb.h explains struct gpuarb_refusal and struct
    gpuarb_refusal_facts, whose members these are. What does not apply is 0, '' or ()."""
    gpu: str
    reason: str  # 'cus', 'queues', 'quota', 'policy', 'drain', 'unmanaged', …
    asked: int
    free: int
    hint: str  # a sentence for people
    retry: bool  # the request may fit later
    end: Tuple[int, ...] = ()  # leases whose end would make room for the whole request
    end_exact: bool = False
    end_cut: bool = False
    resource: str = ''
    total: int = 0
    reserved: int = 0
    key: str = ''
    limit: int = 0
    held: int = 0
    tenant: str = ''
    uid: Optional[int] = None
    asked_class: str = ''
    limit_class: str = ''
    fits: Tuple[int, ...] = ()  # amounts of fits_resource that would pass this check
    fits_resource: str = ''
    leases: Tuple[int, ...] = ()  # that hold the resource on the GPU
    lease_count: int = 0
    processes: Tuple[Process, ...] = ()  # without a lease, that use the GPU
    process_count: int = 0
    behind: int = 0  # a waiting lease that is granted first
    preempt_tenant: str = ''


class Error(OSError):
    """A call of libgpuarb failed. errno has the number, strerror the sentence, and `name` the name
    of the error on the bus, or ''."""
    name: str
    refusals: Tuple[Refusal, ...]

    def __init__(self, number: int, sentence: str, name: str = '',
                 refusals: Sequence[Refusal] = ()) -> None:
        super().__init__(number, sentence)
        self.name = name
        self.refusals = tuple(refusals)

    def __str__(self) -> str:
        return str(self.strerror)

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.errno, self.strerror, self.name, self.refusals)


class InvalidRequest(Error, ValueError):
    """The request is invalid; the sentence names the key and the value."""


def invalid(sentence: str) -> InvalidRequest:
    """The exception for a request that this package refuses."""
    return InvalidRequest(errno.EINVAL, sentence)


class NoCapacity(Error):
    """Does not fit now and may fit later: see `refusals`, or wait."""


class NeverFits(Error):
    """Does not fit on this machine, even if it were idle: see `refusals`."""


class QuotaExceeded(Error):
    """Exceeds the quota of the tenant."""


class NotPermitted(Error):
    """Policy does not allow it."""


class NoSuchGpu(Error):
    """There is no such GPU, or this process cannot see it."""


class NoSuchLease(Error):
    """There is no such lease, or it has ended."""


class NoSuchTenant(Error):
    """There is no such tenant."""


class TokenConflict(Error):
    """The token belongs to a different request."""


class MaskConflict(Error):
    """HSA_CU_MASK, ROC_GLOBAL_CU_MASK or ROCR_VISIBLE_DEVICES is set, and not by this lease."""


class InvalidState(Error):
    """The lease is not in a state for this."""


class OutOfRange(Error):
    """A budget is too small for HIP, or a mask leaves no CU."""


class NotSupported(Error):
    """The daemon, the library or the hardware does not support it."""


class NotSaved(Error):
    """gpuarbd could not save the change, so nothing was granted."""


class TooManyLeases(Error):
    """There are too many leases, or calls of this user."""


class TimedOut(Error, TimeoutError):
    """The time to wait is over."""


class Shutdown(Error):
    """gpuarbd is stopping."""


class DaemonAbsent(Error, ConnectionRefusedError):
    """There is no bus, or no gpuarbd on it: nothing was done."""


class ConnectionLost(Error, ConnectionResetError):
    """gpuarbd or the bus went away during the call, which may have been carried out."""


class ProtocolError(Error):
    """Invalid data from gpuarbd: library and daemon are of different versions."""


class RuntimeStarted(Error):
    """The GPU runtime of this process has started already and reads no variables any more."""


class HipError(Error):
    """A call of HIP failed."""


_BY_NAME: Dict[str, Type[Error]] = {kind.__name__: kind for kind in (
    InvalidRequest, NoCapacity, NeverFits, QuotaExceeded, NotPermitted, NoSuchGpu, NoSuchLease,
    NoSuchTenant, TokenConflict, InvalidState, NotSupported, NotSaved, TooManyLeases, TimedOut,
    Shutdown)}

_BY_ERRNO: Dict[int, Type[Error]] = {
    errno.EINVAL: InvalidRequest,
    errno.EBUSY: NoCapacity,
    errno.ENOSPC: NeverFits,
    errno.EDQUOT: QuotaExceeded,
    errno.EACCES: NotPermitted,
    errno.ENODEV: NoSuchGpu,
    errno.ENOENT: NoSuchLease,
    errno.ESRCH: NoSuchTenant,
    errno.EEXIST: MaskConflict,
    errno.EBADFD: InvalidState,
    errno.ERANGE: OutOfRange,
    errno.EOPNOTSUPP: NotSupported,
    errno.EUSERS: TooManyLeases,
    errno.ETIMEDOUT: TimedOut,
    errno.ESHUTDOWN: Shutdown,
    errno.ECONNREFUSED: DaemonAbsent,
    errno.ECONNRESET: ConnectionLost,
    errno.EPROTO: ProtocolError,
}


def kind_of(number: int, name: str) -> Type[Error]:
    """The exception for an errno and the name of an error on the bus, which decides if it is one of
    gpuarbd's."""
    if name.startswith(_PREFIX) and name[len(_PREFIX):] in _BY_NAME:
        return _BY_NAME[name[len(_PREFIX):]]
    return _BY_ERRNO.get(number, Error)


def processes_of(array: Any, n: int) -> Tuple[Process, ...]:
    return tuple(copied(Process, array[i]) for i in range(n))


def refusal_of(raw: library.Refusal, facts: Any) -> Refusal:
    """Copies a refusal. facts: a pointer to struct gpuarb_refusal_facts, or NULL."""
    known: Dict[str, Any] = {}
    if facts:
        f = facts.contents
        # A libgpuarb that is older than this package filled in less.
        if f.size >= library.RefusalFacts.end_cut.offset + library.RefusalFacts.end_cut.size:
            known = {**library.values_of(Refusal, f),
                     'processes': processes_of(f.processes, f.n_processes)}
    return copied(Refusal, raw, **known)


def last_refusals(handle: Any) -> Tuple[Refusal, ...]:
    """The refusals of the last call with the handle."""
    n = c_size_t()
    array = lib.gpuarb_last_refusals(handle, n)
    return tuple(refusal_of(array[i], lib.gpuarb_last_refusal_facts(handle, i))
                 for i in range(n.value))


def last_error(handle: Any, result: int) -> Error:
    """The exception for a call with the handle that returned this negative errno."""
    name = text(lib.gpuarb_last_error_name(handle))
    sentence = text(lib.gpuarb_last_error(handle))
    kind = kind_of(-result, name)
    return kind(-result, sentence, name, last_refusals(handle) if handle else ())
