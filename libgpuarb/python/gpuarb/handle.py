# SPDX-License-Identifier: LGPL-2.1-or-later
"""A handle of libgpuarb, which one thread uses at a time."""

import contextlib
import errno
import os
import threading
import time
from ctypes import c_void_p
from typing import Any, Callable, Iterator, NoReturn, TypeVar

from .errors import InvalidState, last_error
from .library import lib
from .request import usec

T = TypeVar('T')


class Single:
    """An object that owns something of a library, which a copy would free once more."""

    def __reduce__(self) -> NoReturn:
        raise TypeError(f'{self!r} cannot be copied or pickled')


def closed() -> InvalidState:
    """The exception for a call of a closed connection."""
    return InvalidState(errno.EBADFD, 'the connection to gpuarbd is closed')


class Handle:
    """struct gpuarb. Leases share the handle that they were made with, and its lock. The last user
    that leaves closes it."""

    def __init__(self) -> None:
        self.pointer = c_void_p()
        self.lock = threading.RLock()
        self._pid = os.getpid()
        self._users = 1
        while (r := lib.gpuarb_open(self.pointer)) == -errno.EINTR:
            pass
        if r < 0:
            raise last_error(None, r)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """The lock of an open handle. In a forked child, where another thread may have had the lock
        at the fork, check() fails instead."""
        self.check()
        with self.lock:
            self.check()
            yield

    def check(self) -> None:
        """Fails if the handle is closed, or belongs to the parent of this process."""
        if self._pid != os.getpid():
            raise InvalidState(errno.EBADFD, 'the connection to gpuarbd belongs to the parent '
                               f'process {self._pid}: make one after the fork')
        if not self.pointer:
            raise closed()

    @property
    def inherited(self) -> bool:
        return self._pid != os.getpid()

    def call(self, function: Callable[..., int], *args: Any) -> int:
        """The result of a function; raises what it failed with. A call that a signal interrupted is
        made again after the handlers of the signal, unless one of them raises."""
        with self.locked():
            while (r := int(function(*args))) == -errno.EINTR:
                pass
            if r < 0:
                raise last_error(self.pointer, r)
            return r

    def read(self, function: Callable[..., int], free: Callable[[c_void_p], None],
             copy: Callable[[c_void_p], T], *args: Any) -> T:
        """What copy() makes of the object that a function returns through its last argument."""
        pointer = c_void_p()
        self.call(function, self.pointer, *args, pointer)
        try:
            return copy(pointer)
        finally:
            free(pointer)

    def call_until(self, seconds: float, function: Callable[[int], int]) -> None:
        """The same for a function that takes a number of microseconds to wait."""
        end = time.monotonic() + seconds
        with self.locked():
            left = seconds
            while (r := function(usec('seconds', left))) == -errno.EINTR:
                left = max(0.0, end - time.monotonic())
            if r < 0:
                raise last_error(self.pointer, r)

    def join(self) -> 'Handle':
        with self.lock:
            self._users += 1
        return self

    def leave(self) -> None:
        if self.inherited:
            return
        with self.lock:
            self._users -= 1
            if self._users == 0:
                lib.gpuarb_close(self.pointer)
                self.pointer = c_void_p()
