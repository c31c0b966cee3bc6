# SPDX-License-Identifier: LGPL-2.1-or-later
"""HIP streams with the mask of a lease, through the libamdhip64 that this process uses."""

import ctypes
import errno
import os
import re
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_uint32, c_void_p
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, List, Optional, Tuple, Type

from .errors import Error, HipError, NoSuchGpu, NotSupported, RuntimeStarted
from .handle import Single
from .partition import Partition

if TYPE_CHECKING:
    from .lease import Lease

_NAMES = ('libamdhip64.so.7', 'libamdhip64.so.6', 'libamdhip64.so.5', 'libamdhip64.so')
_LIBRARY = re.compile(r'/libamdhip64\.so[.\d]*$')
_WGPS_SINCE = 60000000  # from this version on a bit of HIP's mask is a WGP on gfx10 and later

_PROTOTYPES: Any = {
    'hipDeviceGetByPCIBusId': (c_int, POINTER(c_int), c_char_p),
    'hipExtStreamCreateWithCUMask': (c_int, POINTER(c_void_p), c_uint32, POINTER(c_uint32)),
    'hipGetDevice': (c_int, POINTER(c_int)),
    'hipGetErrorName': (c_char_p, c_int),
    'hipGetLastError': (c_int,),
    'hipRuntimeGetVersion': (c_int, POINTER(c_int)),
    'hipSetDevice': (c_int, c_int),
    'hipStreamDestroy': (c_int, c_void_p),
    'hipStreamSynchronize': (c_int, c_void_p),
}


def _paths() -> List[str]:
    """The libamdhip64 that this process has loaded, such as that of PyTorch; else its names."""
    with open('/proc/self/maps', encoding='utf-8', errors='surrogateescape') as maps:
        loaded = [line.split(maxsplit=5)[-1].rstrip('\n') for line in maps]
    return [path for path in loaded if _LIBRARY.search(path)][:1] or list(_NAMES)


class Hip:
    """The functions of libamdhip64."""

    def __init__(self) -> None:
        if 'torch' in sys.modules:
            sys.modules['torch'].cuda.is_available()  # loads the HIP that PyTorch brings
        failures = []
        for path in _paths():
            try:
                self._library = ctypes.CDLL(path)
                return
            except OSError as error:
                failures.append(str(error))
        raise NotSupported(errno.EOPNOTSUPP, 'libamdhip64 cannot be loaded: install HIP '
                           f'({"; ".join(failures)})')

    def call(self, name: str, *arguments: Any) -> Any:
        function = self._library[name]
        function.restype, *function.argtypes = _PROTOTYPES[name]
        return function(*arguments)

    def check(self, name: str, *arguments: Any) -> None:
        """Calls a function, and raises HipError with the name of its error."""
        error = self.call(name, *arguments)
        if error != 0:
            self.call('hipGetLastError')
            word = self.call('hipGetErrorName', error).decode()
            raise HipError(errno.EIO, f'{name}: {word}')

    def device_of(self, partition: Partition) -> int:
        """HIP's number for the GPU of a partition."""
        if partition.kfd_gpu_id == 0 or '/' in partition.gpu:
            raise NotSupported(errno.EOPNOTSUPP, f'GPU {partition.gpu} cannot be found by its PCI '
                               'address: use a GPU that is neither simulated nor partitioned')
        device = c_int(-1)
        error = self.call('hipDeviceGetByPCIBusId', byref(device), partition.gpu.encode())
        if error != 0 or device.value < 0:
            self.call('hipGetLastError')
            raise NoSuchGpu(errno.ENODEV, f'HIP has no device for GPU {partition.gpu}: give this '
                            'process access to it, and make it visible')
        return device.value


def _halved(words: Tuple[int, ...]) -> Tuple[int, ...]:
    """A bit for each pair of CUs."""
    mask = sum(word << 32 * i for i, word in enumerate(words))
    pairs = sum(1 << i for i in range(16 * len(words)) if mask >> 2 * i & 3)
    return tuple(pairs >> 32 * i & 0xffffffff for i in range((len(words) + 1) // 2))


def _create(hip: Hip, masks: List[Tuple[int, ...]]) -> c_void_p:
    """A stream with the first of the masks that HIP takes."""
    stream = c_void_p()
    for words in masks[:-1]:
        array = (c_uint32 * len(words))(*words)
        error = hip.call('hipExtStreamCreateWithCUMask', byref(stream), len(words), array)
        if error == 0:
            return stream
    array = (c_uint32 * len(masks[-1]))(*masks[-1])
    hip.check('hipExtStreamCreateWithCUMask', byref(stream), len(masks[-1]), array)
    return stream


class Stream(Single):
    """A HIP stream whose hardware queue has the CU mask of a lease. `handle` is the hipStream_t,
    `device` HIP's number for the GPU."""

    def __init__(self, lease: 'Lease', i: int = 0) -> None:
        lease.dispatch()
        partition = lease.partitions[i]
        self._hip = Hip()
        self.device = self._hip.device_of(partition)
        self.handle = self._create(lease, i, partition)

    def _create(self, lease: 'Lease', i: int, partition: Partition) -> int:
        before, version = c_int(), c_int()
        self._hip.check('hipGetDevice', byref(before))
        self._hip.check('hipRuntimeGetVersion', byref(version))
        # A bit of HIP's mask is a CU or a WGP, after its version. KFD gets the exact mask below.
        wgps = lease.gpu(i).wgp_mode
        masks = [_halved(partition.cu_mask), partition.cu_mask] if wgps else [partition.cu_mask]
        if wgps and version.value < _WGPS_SINCE:
            masks.reverse()
        known = set(lease.queue_ids(i))
        self._hip.check('hipSetDevice', self.device)
        try:
            stream = _create(self._hip, masks)
        finally:
            self._hip.call('hipSetDevice', before)
        try:
            # The new queues are that of the stream, and that of ROCr before the first stream.
            for number in set(lease.queue_ids(i)) - known:
                lease.mask_queue(number, i)
        except Error:
            self._hip.call('hipStreamDestroy', stream)
            raise
        assert stream.value is not None
        return stream.value

    def __enter__(self) -> 'Stream':
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.destroy()

    def synchronize(self) -> None:
        """Waits for the work in the stream."""
        self._hip.check('hipStreamSynchronize', self.handle)

    def destroy(self) -> None:
        """Destroys the stream. PyTorch must not use it any more: prefer to keep streams."""
        if self.handle:
            handle, self.handle = self.handle, 0
            self._hip.check('hipStreamDestroy', handle)

    def torch(self) -> Any:
        """The stream for PyTorch: `with torch.cuda.stream(stream.torch()):`."""
        return import_module('torch.cuda').ExternalStream(self.handle, device=self.device)


def runtime_has_started() -> bool:
    """Whether the GPU runtime of this process has opened the driver."""
    for fd in os.listdir('/proc/self/fd'):
        try:
            if os.readlink(f'/proc/self/fd/{fd}') == '/dev/kfd':
                return True
        except OSError:
            pass  # closed meanwhile
    return False


def require_no_runtime() -> None:
    if runtime_has_started():
        raise RuntimeStarted(errno.EBUSY, 'the GPU runtime of this process has opened '
                             '/dev/kfd, and reads no variables any more: apply the lease before '
                             'the first call of HIP, or use lease.stream()')
