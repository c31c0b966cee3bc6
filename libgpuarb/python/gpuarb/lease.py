# SPDX-License-Identifier: LGPL-2.1-or-later
"""A lease that this process holds."""

import errno
import os
import warnings
from ctypes import POINTER, _Pointer, c_char_p, c_void_p
from types import TracebackType
from typing import Dict, Mapping, Optional, Tuple, Type

from . import library
from .errors import InvalidState
from .handle import Handle
from .library import lib, strings_of, text
from .partition import Partition, partition_of


class Lease:
    """The right to parts of GPUs, which lives as long as its holder, a file descriptor, is open.

        with arbiter.reserve(cus=30) as lease:
            print(lease.effective_cus)

    The `with` statement closes it. The properties have the last known state: dispatch(), wait() and
    changes() read what gpuarbd has reported since."""

    def __init__(self, handle: Handle, pointer: c_void_p) -> None:
        self._handle = handle.join()
        self._pointer = pointer
        self._fd = int(lib.gpuarb_lease_fd(pointer))
        self._id = int(lib.gpuarb_lease_id(pointer))

    def __enter__(self) -> 'Lease':
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        return f'<gpuarb.Lease {self._id}: {self.state if self._pointer else "closed"}>'

    def __del__(self) -> None:
        if getattr(self, '_pointer', None) and not self._handle.inherited:
            warnings.warn(f'lease {self._id} was not closed', ResourceWarning, source=self)
            self.close()

    def close(self) -> None:
        """Closes the holder of this process. The lease ends, unless another copy of the holder is
        open, or a bound process lives. In a forked child this closes the copy of the child."""
        with self._handle.lock:
            if not self._pointer:
                return
            if self._handle.inherited:
                os.close(self._fd)
            else:
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
        self._handle.check()
        if not self._pointer:
            raise InvalidState(errno.EBADFD, f'lease {self._id} is closed')
        return self._pointer

    @property
    def id(self) -> int:
        return self._id

    @property
    def state(self) -> str:
        """'waiting', 'granted', 'inactive', 'activating', 'revoking' or 'ending'."""
        return text(lib.gpuarb_lease_state(self._check()))

    @property
    def generation(self) -> int:
        """Counts the changes of the partitions."""
        return int(lib.gpuarb_lease_generation(self._check()))

    @property
    def reason(self) -> str:
        """A sentence about the state, or ''."""
        return text(lib.gpuarb_lease_reason(self._check()))

    @property
    def deadline(self) -> Optional[float]:
        """When the state ends, in seconds of time.CLOCK_BOOTTIME; None: no deadline."""
        value = int(lib.gpuarb_lease_deadline(self._check()))
        return None if value == library.FOREVER else value / 1e6

    @property
    def partitions(self) -> Tuple[Partition, ...]:
        """What the lease has on each GPU, in the order of the wants; () while it waits."""
        pointer = self._check()
        with self._handle.lock:
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
        pointer = self._check()
        array = POINTER(c_char_p)()
        with self._handle.lock:
            self._handle.call(lib.gpuarb_lease_environment, pointer, array)
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


def _settings(array: '_Pointer[c_char_p]') -> Dict[str, Optional[str]]:
    result: Dict[str, Optional[str]] = {}
    for entry in strings_of(array):
        name, separator, value = os.fsdecode(entry).partition('=')
        result[name] = value if separator else None
    return result
