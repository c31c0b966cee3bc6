# SPDX-License-Identifier: LGPL-2.1-or-later
"""gpuarbd, as a program uses it."""

import functools
import inspect
from ctypes import c_void_p
from types import TracebackType
from typing import (Any, Callable, Concatenate, Optional, ParamSpec, Type, TypeVar, Union)

from .counters import Counters, read_counters
from .handle import Handle, Single, closed
from .lease import Lease
from .library import lib
from .plan import Plan, make_plan
from .request import (Request, Want, argument, flag, raw_options, raw_wants, request, usec,
                      whole)
from .slots import Slots, read_slots
from .snapshot import Snapshot, take_snapshot

# How many seconds longer than `wait` reserve() waits: gpuarbd ends the lease at its deadline, and
# tells the reason.
GRACE = 5.0

P = ParamSpec('P')
T = TypeVar('T')
S = TypeVar('S')


def _shown_as(build: Callable[..., Request], wrapped: Any, function: Any) -> None:
    """Lets help() show the arguments of build() and the result of the function."""
    shown = inspect.signature(build)
    wrapped.__signature__ = shown.replace(
        return_annotation=inspect.signature(function).return_annotation)


def _with_request(build: Callable[P, Request]) -> Callable[
        [Callable[[S, Request], T]], Callable[Concatenate[S, P], T]]:
    """Gives a method that takes a Request the arguments of request() instead."""
    def decorate(method: Callable[[S, Request], T]) -> Callable[Concatenate[S, P], T]:
        @functools.wraps(method)
        def wrapped(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return method(self, build(*args, **kwargs))
        _shown_as(build, wrapped, method)
        return wrapped
    return decorate


class Arbiter(Single):
    """A connection to gpuarbd: on the bus at $GPUARB_BUS_ADDRESS, else on the system bus.

    Threads can share it; each call waits for the one before. Leases do not depend on it. A child
    process makes its own."""

    def __init__(self) -> None:
        self._shared = Handle()
        self._closed = False

    @property
    def _handle(self) -> Handle:
        """The handle, which its leases share, and use after close()."""
        if self._closed:
            raise closed()
        return self._shared

    def __enter__(self) -> 'Arbiter':
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection: every call but this one then raises InvalidState. Its leases stay,
        and connect again when they have to."""
        if not self._closed:
            self._closed = True
            self._shared.leave()

    def __del__(self) -> None:
        if hasattr(self, '_closed'):
            self.close()

    def start(self, seconds: float) -> None:
        """Asks the bus to start gpuarbd unless it runs, and waits until it is there."""
        self._handle.call_until(
            seconds, lambda left: int(lib.gpuarb_start(self._handle.pointer, left)))

    def set_interactive(self, interactive: bool) -> None:
        """Whether polkit may ask a person for a password when a call needs an administrator."""
        self._handle.check()
        lib.gpuarb_set_interactive(self._handle.pointer, flag('interactive', interactive))

    def set_timeout(self, seconds: float) -> None:
        """How long each call waits for the answer of gpuarbd."""
        self._handle.check()
        lib.gpuarb_set_timeout(self._handle.pointer, usec('seconds', seconds))

    def snapshot(self) -> Snapshot:
        """All GPUs and leases at this moment."""
        return take_snapshot(self._handle)

    def observe_clients(self) -> None:
        """Lets gpuarbd observe which processes have GPUs open, before a snapshot."""
        self._handle.call(lib.gpuarb_observe_clients, self._handle.pointer)

    def slots(self, gpu: Union[str, int]) -> Slots:
        """The queue slots of a GPU, which gpuarbd reads from its registers: not for a loop."""
        return read_slots(self._handle, str(gpu))

    def counters(self) -> Counters:
        """What happened since gpuarbd was started."""
        return read_counters(self._handle)

    @_with_request(request)
    def plan(self, asked: Request) -> Plan:
        """What reserve() would do, without reserving anything. Takes the arguments of request()."""
        return make_plan(self._handle, raw_wants(asked.wants), raw_options(asked))

    @_with_request(request)
    def reserve(self, asked: Request) -> Lease:
        """Reserves a part of one GPU, or of several. Takes the arguments of request(). The lease
        ends when it is closed: use it in a `with` statement."""
        if asked.wait == 0:
            return self._reserve(lib.gpuarb_reserve, asked)
        lease = self._reserve(lib.gpuarb_reserve_start, asked)
        try:
            lease.wait(asked.wait + GRACE)
        except BaseException:
            lease.close()
            raise
        return lease

    def _reserve(self, function: Callable[..., int], asked: Request) -> Lease:
        wants = raw_wants(asked.wants)
        pointer = c_void_p()
        try:
            self._handle.call(function, self._handle.pointer, wants, len(wants),
                              raw_options(asked), pointer)
            return Lease(self._handle, pointer)  # which takes it
        finally:
            if pointer:  # a handler of a signal has raised in between
                lib.gpuarb_lease_close(pointer)

    @_with_request(request)
    def reserve_start(self, asked: Request) -> Lease:
        """The same without waiting for the grant. The lease may be 'waiting': Lease.wait()."""
        return self._reserve(lib.gpuarb_reserve_start, asked)

    @_with_request(request)
    async def reserve_async(self, asked: Request) -> Lease:
        """reserve() for asyncio: other tasks run while it waits for room."""
        lease = self.reserve_start(asked)
        try:
            await lease.granted()
        except BaseException:
            lease.close()
            raise
        return lease

    # ---- leases by number, and administration ----------------------------------------------------

    def release(self, lease: int) -> None:
        """Ends a lease of this user, or, for administrators, of any user."""
        self._handle.call(lib.gpuarb_release, self._handle.pointer, whole('lease', lease))

    def activate(self, lease: int) -> None:
        """Reclaims the CUs that an inactive realtime lease has lent. Does not wait for them."""
        self._handle.call(lib.gpuarb_activate, self._handle.pointer, whole('lease', lease))

    def deactivate(self, lease: int) -> None:
        """Lends the CUs of a realtime lease."""
        self._handle.call(lib.gpuarb_deactivate, self._handle.pointer, whole('lease', lease))

    def resize(self, lease: int, *wants: Want) -> None:
        """Requests other partitions on the same GPUs: one want for each, in their order."""
        array = raw_wants(wants)
        self._handle.call(lib.gpuarb_resize, self._handle.pointer, whole('lease', lease), array,
                          len(array))

    def revoke(self, lease: int, grace: float, reason: Optional[str] = None) -> None:
        """Administrators: revokes a lease. Its holder has `grace` seconds to finish its work."""
        self._handle.call(lib.gpuarb_revoke, self._handle.pointer, whole('lease', lease),
                          usec('grace', grace), argument('reason', reason))

    def drain(self, gpu: Union[str, int], drain: bool = True) -> None:
        """Administrators: stops new grants on a GPU, or allows them again."""
        self._handle.call(lib.gpuarb_drain, self._handle.pointer, argument('gpu', str(gpu)),
                          flag('drain', drain))

    def reload(self) -> None:
        """Administrators: gpuarbd reads its configuration again."""
        self._handle.call(lib.gpuarb_reload, self._handle.pointer)


def _of_new_arbiter(build: Callable[P, Request],
                    method: Callable[Concatenate[Arbiter, P], T]) -> Callable[P, T]:
    """A function that calls a method of a new connection."""
    @functools.wraps(method)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        with Arbiter() as arbiter:
            return method(arbiter, *args, **kwargs)
    _shown_as(build, wrapped, method)
    return wrapped


reserve = _of_new_arbiter(request, Arbiter.reserve)
plan = _of_new_arbiter(request, Arbiter.plan)


def snapshot() -> Snapshot:
    """All GPUs and leases at this moment."""
    with Arbiter() as arbiter:
        return arbiter.snapshot()
