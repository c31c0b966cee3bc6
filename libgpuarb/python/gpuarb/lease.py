# SPDX-License-Identifier: LGPL-2.1-or-later
"""A lease that this process holds."""

import contextlib
import errno
import math
import os
import select
import time
import warnings
from ctypes import POINTER, _Pointer, c_char_p, c_uint, c_uint32, c_void_p
from dataclasses import dataclass
from types import TracebackType
from typing import (TYPE_CHECKING, Any, AsyncIterator, Callable, Dict, Iterable, Iterator, List,
                    Mapping, Optional, Sequence, Set, Tuple, Type, TypeVar)

from . import library
from .errors import Error, InvalidState, NoSuchGpu, TimedOut
from .handle import Handle, Single
from .library import lib, strings_of, text
from .partition import Partition, partition_of
from .request import Want, raw_wants, whole
from .snapshot import Gpu, take_snapshot
from .watch import readable

if TYPE_CHECKING:
    from .hip import Stream

T = TypeVar('T')


@dataclass(frozen=True)
class Status:
    """The state of a lease after a change."""
    state: str
    generation: int
    reason: str
    deadline: Optional[float]  # in seconds of time.CLOCK_BOOTTIME


class Lease(Single):
    """The right to parts of GPUs, which lives as long as its holder, a file descriptor, is open.

        with arbiter.reserve(cus=30) as lease:
            print(lease.effective_cus)

    The `with` statement closes it. The properties have the last known state: dispatch(), wait() and
    changes() read what gpuarbd has reported since."""

    def __init__(self, handle: Handle, pointer: c_void_p) -> None:
        self._pointer = c_void_p()  # for __del__(), if a handler of a signal raises before the end
        self._fd = int(lib.gpuarb_lease_fd(pointer))
        self._id = int(lib.gpuarb_lease_id(pointer))
        self._waits: Set[int] = set()  # pipes to the threads and tasks that wait
        self._handle = handle.join()
        self._pointer, pointer.value = c_void_p(pointer.value), None

    # ---- changes ---------------------------------------------------------------------------------

    def wait(self, timeout: float = math.inf) -> None:
        """Waits while the lease is 'waiting' or 'activating'. TimedOut with the name '' is the end
        of `timeout`: the lease is unchanged."""
        end = time.monotonic() + timeout
        while True:
            try:
                self._call(lib.gpuarb_lease_wait, 0)
                return
            except TimedOut as error:
                left = end - time.monotonic()
                if error.name or left <= 0:
                    raise
            self._poll(left)

    async def granted(self) -> None:
        """wait() for asyncio."""
        import asyncio

        while self.state in ('waiting', 'activating'):
            with self._descriptors() as descriptors:
                await readable(asyncio.get_running_loop(), *descriptors)
            try:
                self.wait(0)
            except TimedOut as error:
                if error.name:
                    raise
        self.wait(0)  # binds the process of the request, or raises what ended the lease

    def dispatch(self) -> Tuple[Status, ...]:
        """Reads what gpuarbd has reported, without blocking: a Status for each change. Raises
        the reason of the end if it was reported before."""
        seen: List[Status] = []
        changed = library.LeaseChanged(lambda *_: seen.append(self._status()))
        try:
            self._call(lib.gpuarb_lease_dispatch, changed, None)
        except Error:
            if not seen:
                raise
        return tuple(seen)

    def _status(self) -> Status:
        return Status(self.state, self.generation, self.reason, self.deadline)

    def changes(self, timeout: Optional[float] = None) -> Iterator[Status]:
        """Follows the lease until it ends, or there is no change for `timeout` seconds."""
        while not self._ended():
            yield from self.dispatch()
            if self._ended():
                return
            if not self._poll(timeout):
                return

    async def changes_async(self) -> AsyncIterator[Status]:
        """changes() for asyncio."""
        import asyncio

        while not self._ended():
            for status in self.dispatch():
                yield status
            if not self._ended():
                with self._descriptors() as descriptors:
                    await readable(asyncio.get_running_loop(), *descriptors)

    def _poll(self, timeout: Optional[float]) -> bool:
        """Waits until there is something to read; False: for so many seconds there was not. Without
        the lock, so that another thread can close the lease, which ends the wait."""
        with self._descriptors() as descriptors:
            return _poll(descriptors, timeout)

    @contextlib.contextmanager
    def _descriptors(self) -> Iterator[Tuple[int, int]]:
        """The holder, and a descriptor that close() makes readable."""
        with self._locked():
            holder = self._fd
            closed, close = os.pipe2(os.O_CLOEXEC)
            self._waits.add(close)
        try:
            yield holder, closed
        finally:
            with self._handle.lock:
                self._waits.remove(close)
            os.close(closed)
            os.close(close)

    def _ended(self) -> bool:
        return self.state == 'ending'

    def acknowledge(self) -> None:
        """Tells gpuarbd that every queue of this process has the present masks. While the lease is
        'revoking': ends it."""
        self._call(lib.gpuarb_lease_acknowledge)

    def resize(self, *wants: Want) -> None:
        """Requests other partitions on the same GPUs: one want for each, in their order."""
        array = raw_wants(wants)
        self._call(lib.gpuarb_lease_resize, array, len(array))

    def activate(self) -> None:
        """Reclaims the CUs of a realtime lease from those that borrow them: wait() waits."""
        self._call(lib.gpuarb_lease_activate)

    def deactivate(self) -> None:
        """Lends the CUs of a realtime lease."""
        self._call(lib.gpuarb_lease_deactivate)

    def position(self) -> int:
        """The position in the waiting queue, from 1; 0: the lease does not wait."""
        found = c_uint()
        self._call(lib.gpuarb_lease_position, found)
        return found.value

    # ---- the queues of this process --------------------------------------------------------------

    def gpu(self, i: int = 0) -> Gpu:
        """The GPU of partition i, as gpuarbd observes it."""
        name = self.partitions[i].gpu
        for gpu in take_snapshot(self._handle).gpus:
            if gpu.name == name:
                return gpu
        raise NoSuchGpu(errno.ENODEV, f'gpuarbd has no GPU {name} any more')

    def apply(self) -> int:
        """Masks every compute queue of this process on the GPUs of the lease. Returns how many."""
        return self._call(lib.gpuarb_lease_apply)

    def queue_ids(self, i: int = 0) -> Tuple[int, ...]:
        """The ids of the compute queues of this process on the GPU of partition i."""
        array = (c_uint32 * 1024)()
        n = self._call(lib.gpuarb_lease_queue_ids, whole('i', i), array, len(array))
        return tuple(array[:n])

    def mask_queue(self, queue: int, i: int = 0, mask: Optional[Sequence[int]] = None) -> None:
        """Gives one queue of partition i a mask of its own within the lease; None: that of the
        lease."""
        words = [whole('mask', word, most=2**32 - 1) for word in mask or ()]
        self._call(lib.gpuarb_lease_mask_queue, whole('i', i),
                   whole('queue', queue, most=2**32 - 1),
                   (c_uint32 * len(words))(*words) if words else None, len(words))

    def start_agent(self) -> None:
        """Starts a thread of libgpuarb, without Python, that makes the queues of this process
        follow an adaptable lease. It finds new queues within a tenth of a second:
        apply() masks them at once."""
        self._call(lib.gpuarb_lease_start_agent)

    def check_agent(self) -> None:
        """Raises why the agent could not apply a change."""
        self._call(lib.gpuarb_lease_agent_error)

    def cap(self, always: bool = False) -> bool:
        """Lets the kernel refuse queues beyond the grant, for this thread and the programs that it
        starts. The process must be bound: bind(os.getpid())."""
        return self._call(lib.gpuarb_lease_cap, always) > 0

    def stream(self, i: int = 0) -> 'Stream':
        """A HIP stream with the mask of partition i, through the HIP that this process uses."""
        from .hip import Stream
        return Stream(self, i)

    def set_environment(self) -> None:
        """Applies the lease to this process, before its GPU runtime starts: sets its variables.
        RuntimeStarted: the runtime has started, and reads them no more."""
        from .hip import require_no_runtime
        require_no_runtime()
        _set_environment(self.environment())

    @contextlib.contextmanager
    def in_this_process(self) -> Iterator['Lease']:
        """The same for a block:

            with gpuarb.reserve(cus='25%') as lease, lease.in_this_process():
                import torch

        Restores the variables in the end. The masks of queues stay, so end the use of the GPU
        before."""
        saved = dict(os.environ)
        self.set_environment()
        try:
            yield self
        finally:
            _set_environment(saved)

    # ---- its end ---------------------------------------------------------------------------------

    def bind(self, pid: int) -> None:
        """Binds a process of this user, which then keeps the lease alive."""
        fd = os.pidfd_open(pid)
        try:
            self._call(lib.gpuarb_lease_bind, fd)
        finally:
            os.close(fd)

    def __enter__(self) -> 'Lease':
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ('closed' if not self._pointer else
                 'of another process' if self._handle.inherited else self.state)
        return f'<gpuarb.Lease {self._id}: {state}>'

    def __del__(self) -> None:
        if getattr(self, '_pointer', None) and not self._handle.inherited:
            warnings.warn(f'lease {self._id} was not closed', ResourceWarning, 2, self)
            self.close()

    def close(self) -> None:
        """Closes the holder of this process. The lease ends, unless another copy of the holder is
        open, or a bound process lives. In a forked child this closes the copy of the child."""
        if self._handle.inherited:
            if self._pointer:
                os.close(self._fd)
                self._pointer, self._fd = c_void_p(), -1
            return
        with self._handle.lock:
            if not self._pointer:
                return
            for close in self._waits:
                os.write(close, b'\0')
            lib.gpuarb_lease_close(self._pointer)
            self._pointer, self._fd = c_void_p(), -1
            self._handle.leave()

    def release(self) -> None:
        """Ends the lease for all its holders and bound processes."""
        self._check()
        try:
            self._handle.call(lib.gpuarb_release, self._handle.pointer, self._id)
        finally:
            self.close()

    def fileno(self) -> int:
        """The holder, for poll() and selectors: readable if dispatch() has something to read."""
        self._check()
        return self._fd

    # ---- the state -------------------------------------------------------------------------------

    def _check(self) -> c_void_p:
        if not self._pointer:
            raise InvalidState(errno.EBADFD, f'lease {self._id} is closed')
        self._handle.check()
        return self._pointer

    @contextlib.contextmanager
    def _locked(self) -> Iterator[c_void_p]:
        """The lease, which no other thread closes or changes meanwhile."""
        self._check()
        with self._handle.locked():
            yield self._check()

    def _call(self, function: Callable[..., int], *args: Any) -> int:
        with self._locked() as pointer:
            return self._handle.call(function, pointer, *args)

    def _read(self, function: Callable[[c_void_p], T]) -> T:
        with self._locked() as pointer:
            return function(pointer)

    @property
    def id(self) -> int:
        return self._id

    @property
    def state(self) -> str:
        """'waiting', 'granted', 'inactive', 'activating', 'revoking' or 'ending'."""
        return text(self._read(lib.gpuarb_lease_state))

    @property
    def generation(self) -> int:
        """Counts the changes of the partitions."""
        return int(self._read(lib.gpuarb_lease_generation))

    @property
    def reason(self) -> str:
        """A sentence about the state, or ''."""
        return text(self._read(lib.gpuarb_lease_reason))

    @property
    def deadline(self) -> Optional[float]:
        """When the state ends, in seconds of time.CLOCK_BOOTTIME; None: no deadline."""
        value = int(self._read(lib.gpuarb_lease_deadline))
        return None if value == library.FOREVER else value / 1e6

    @property
    def duration(self) -> Optional[float]:
        """How long the lease lasts once it is granted, in seconds; None: without limit."""
        return int(self._read(lib.gpuarb_lease_duration)) / 1e6 or None

    @property
    def partitions(self) -> Tuple[Partition, ...]:
        """What the lease has on each GPU, in the order of the wants; () while it waits."""
        with self._locked() as pointer:
            return tuple(partition_of(lib.gpuarb_lease_partition(pointer, i).contents)
                         for i in range(lib.gpuarb_lease_partitions(pointer)))

    @property
    def partition(self) -> Partition:
        """The partition of a lease on one GPU."""
        partitions = self.partitions
        if len(partitions) != 1:
            raise InvalidState(errno.EBADFD, f'lease {self._id} is {self.state} and has '
                               f'{len(partitions)} partitions: see lease.partitions')
        return partitions[0]

    @property
    def disturbed_cus(self) -> Tuple[int, ...]:
        """Of each partition: CUs of the lease (realtime: of its shader engines) that queues of
        others cover and no lease grants them. Slow down until they are 0 again."""
        with self._locked() as pointer:
            return tuple(lib.gpuarb_lease_disturbed_cus(pointer, i)
                         for i in range(lib.gpuarb_lease_partitions(pointer)))

    @property
    def alone(self) -> bool:
        """No queue of others covers a CU of the lease. False, too, where gpuarbd cannot read
        queues."""
        return bool(self._read(lib.gpuarb_lease_alone))

    @property
    def resets(self) -> int:
        """How often the driver has reset a GPU of the lease: when it grows, this program has lost
        its queues there."""
        return int(self._read(lib.gpuarb_lease_resets))

    @property
    def resetting(self) -> bool:
        """A reset has not ended, or a program that has lost its queues by it."""
        return bool(self._read(lib.gpuarb_lease_resetting))

    @property
    def cus(self) -> int:
        return self.partition.cus

    @property
    def effective_cus(self) -> int:
        """How many blocks a persistent kernel needs. Ask again after each change."""
        return self.partition.effective_cus

    # ---- for other programs ----------------------------------------------------------------------

    def variables(self) -> Dict[str, Optional[str]]:
        """The variables with which the GPU runtime of a program masks every queue; None: the
        variable has to be unset."""
        array = POINTER(c_char_p)()
        with self._locked():
            self._call(lib.gpuarb_lease_environment, array)
            try:
                return _settings(array)
            finally:
                library.free(array)

    def environment(self, base: Optional[Mapping[str, str]] = None) -> Dict[str, str]:
        """The environment for another program: subprocess.run(..., env=lease.environment()). base
        is the environment that it starts from, os.environ by default."""
        result = dict(os.environ if base is None else base)
        for name, value in self.variables().items():
            if value is None:
                result.pop(name, None)
            else:
                result[name] = value
        return result


def _poll(descriptors: Iterable[int], timeout: Optional[float]) -> bool:
    """Waits until one of the file descriptors is readable; False: for so many seconds none was."""
    poll = select.poll()
    for fd in descriptors:
        poll.register(fd, select.POLLIN)
    # poll() takes milliseconds, in an int of C; a negative number is without limit.
    return bool(poll.poll(None if timeout is None else math.ceil(max(0, min(timeout, 1e6)) * 1e3)))


def _set_environment(environment: Mapping[str, str]) -> None:
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    for name, value in environment.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def _settings(array: '_Pointer[c_char_p]') -> Dict[str, Optional[str]]:
    result: Dict[str, Optional[str]] = {}
    for entry in strings_of(array):
        name, separator, value = os.fsdecode(entry).partition('=')
        result[name] = value if separator else None
    return result
