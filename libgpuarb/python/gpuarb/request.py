# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a program asks for: wants, one for each GPU, with options."""

import ctypes
import os
import re
from dataclasses import dataclass, fields, replace
from typing import Any, Iterable, Optional, Sequence, SupportsIndex, Tuple, Union

from . import library
from .errors import invalid

Cus = Union[int, str]  # a number of CUs, also as a string, or a share of the GPU's such as '25%'

Gpu = Union[str, int, Sequence[Union[str, int]], None]

_SHARE = re.compile(r'(\d{1,3})%', re.ASCII)


def argument(key: str, value: Optional[str]) -> Optional[bytes]:
    """A string for the library; None is NULL."""
    if value is None:
        return None
    if not isinstance(value, str) or '\0' in value:
        raise invalid(f'{key}={value!r}: must be a string without a NUL character')
    try:
        return os.fsencode(value)
    except UnicodeEncodeError:
        raise invalid(f'{key}={value!r}: must be a string that can be encoded') from None


def whole(key: str, value: SupportsIndex, least: int = 0, most: int = 2**64 - 1) -> int:
    """A number for the library. ctypes would silently take it modulo 2**32 or 2**64."""
    if (isinstance(value, bool) or not isinstance(value, SupportsIndex)
            or not least <= value.__index__() <= most):
        raise invalid(f'{key}={value!r}: must be a whole number from {least} to {most}')
    return value.__index__()


def flag(key: str, value: bool) -> bool:
    """A flag for the library, which would take 'no' as true."""
    if isinstance(value, str):
        raise invalid(f'{key}={value!r}: must be True or False')
    return value


def usec(key: str, seconds: float) -> int:
    """A time for the library; math.inf is without limit."""
    if not isinstance(seconds, (int, float)) or not seconds >= 0:
        raise invalid(f'{key}={seconds!r}: must be a number of seconds from 0, or math.inf')
    return min(library.FOREVER, int(seconds * 1e6)) if seconds < 1e12 else library.FOREVER


def _duration(seconds: float) -> int:
    value = usec('duration', seconds)
    if 0 < seconds < 1 or value == library.FOREVER:
        raise invalid(f'duration={seconds!r}: must be a number of seconds from 1, or 0 for the '
                      'duration that the tenant sets')
    return value


@dataclass(frozen=True)
class Want:
    """What is requested of one GPU. gpuarb.h explains struct gpuarb_want, whose members these are:
    what is 0, None or False has its default. `cus`, `cus_min` and `cus_max` can be a share such as
    '25%' of the GPU that is chosen, rounded down."""
    cus: Cus = 0
    gpu: Gpu = None  # 'any', an index, a PCI address, or several of these: one of them
    shader_engines: int = 0
    cus_min: Cus = 0
    cus_max: Cus = 0
    exact: bool = False
    shape: Optional[str] = None  # 'rectangle' or 'any'
    queues: int = 0
    streams: int = 0
    processes: int = 0
    sdma_queues: int = 0
    sdma_xgmi_queues: int = 0
    vram: int = 0  # bytes
    cooperative: bool = False
    priority: Optional[int] = None  # 0 to 15
    isolation: Optional[str] = None  # 'shader-engine', 'cu' or 'shared'


@dataclass(frozen=True)
class Request:
    """Wants and options, as request() makes them."""
    wants: Tuple[Want, ...]
    class_: Optional[str] = None
    name: Optional[str] = None
    tenant: Optional[str] = None
    token: Optional[str] = None
    wait: float = 0
    start_inactive: bool = False
    adaptable: bool = False
    process_fd: int = -1
    exclusive: Optional[str] = None
    requeue: bool = False
    duration: float = 0


def request(*wants: Union[Want, Request], cus: Cus = 0, gpu: Gpu = None,
            shader_engines: int = 0, cus_min: Cus = 0, cus_max: Cus = 0, exact: bool = False,
            shape: Optional[str] = None, queues: int = 0, streams: int = 0, processes: int = 0,
            sdma_queues: int = 0, sdma_xgmi_queues: int = 0, vram: int = 0,
            cooperative: bool = False, priority: Optional[int] = None,
            isolation: Optional[str] = None,
            class_: Optional[str] = None, name: Optional[str] = None, tenant: Optional[str] = None,
            token: Optional[str] = None, wait: float = 0, start_inactive: bool = False,
            adaptable: bool = False, process_fd: int = -1, exclusive: Optional[str] = None,
            requeue: bool = False, duration: float = 0) -> Request:
    """A request for a part of one GPU: request(cus='25%', queues=4, class_='guaranteed', wait=60).

    For several GPUs, all or none, pass a Want for each: request(Want(cus=30), Want(cus=30)). A
    Request alone is returned as it is, so that functions which take these arguments take it, too.

    wait is in seconds; 0: fail instead of waiting; math.inf: without limit. duration is in seconds
    from the grant on, at least 1; 0: as the tenant. process_fd is a pidfd of a process that keeps
    the lease alive. gpuarb.h explains struct gpuarb_want and struct gpuarb_options, whose members
    the others are.
    """
    one = Want(cus, gpu, shader_engines, cus_min, cus_max, exact, shape, queues, streams, processes,
               sdma_queues, sdma_xgmi_queues, vram, cooperative, priority, isolation)
    made = Request((one,), class_, name, tenant, token, wait, start_inactive, adaptable, process_fd,
                   exclusive, requeue, duration)
    if not wants:
        return made
    if one != Want():
        names = [field.name for field in fields(Want) if getattr(one, field.name) != field.default]
        raise invalid(f'{", ".join(names)}: belongs into a Want, because the request has wants')
    if isinstance(wants[0], Request):
        if len(wants) > 1 or made != Request((Want(),)):
            raise invalid('a Request takes no further wants and options: make another request()')
        return wants[0]
    return replace(made, wants=tuple(_want(want) for want in wants))


def _want(value: object) -> Want:
    if not isinstance(value, Want):
        raise invalid(f'{value!r} is not a gpuarb.Want')
    return value


def _cus(raw: library.Want, want: Want, key: str) -> None:
    """A number of CUs, or a share of each GPU that the want can be granted on."""
    value: Cus = getattr(want, key)
    if not isinstance(value, str):
        setattr(raw, key, whole(key, value, most=2**32 - 1))
    elif re.fullmatch(r'\d{1,9}', value, re.ASCII):
        setattr(raw, key, int(value))
    else:
        match = _SHARE.fullmatch(value)
        if not match or not 1 <= int(match.group(1)) <= 100:
            raise invalid(f'{key}={value!r}: must be a number of CUs, or a share from 1% to 100%')
        setattr(raw, f'{key}_percent', int(match.group(1)))


def _gpu(want: Want) -> Optional[bytes]:
    if want.gpu is None:
        return None
    if isinstance(want.gpu, str) or not isinstance(want.gpu, Iterable):
        return argument('gpu', str(want.gpu))
    return argument('gpu', ','.join(map(str, want.gpu)))


def raw_wants(wants: Sequence[Want]) -> Any:
    """An array of struct gpuarb_want."""
    array = (library.Want * len(wants))()
    for raw, want in zip(array, map(_want, wants), strict=True):
        raw.size = ctypes.sizeof(library.Want)
        raw.gpu = _gpu(want)
        for key in ('cus', 'cus_min', 'cus_max'):
            _cus(raw, want, key)
        for key in ('shader_engines', 'queues', 'streams', 'processes', 'sdma_queues',
                    'sdma_xgmi_queues'):
            setattr(raw, key, whole(key, getattr(want, key), most=2**32 - 1))
        raw.vram = whole('vram', want.vram)
        raw.priority = (library.PRIORITY_DEFAULT if want.priority is None
                        else whole('priority', want.priority, most=15))
        raw.exact, raw.cooperative = (flag(key, getattr(want, key))
                                      for key in ('exact', 'cooperative'))
        raw.shape, raw.isolation = (argument(key, getattr(want, key))
                                    for key in ('shape', 'isolation'))
    return array


def raw_options(asked: Request) -> library.Options:
    lease_class, name, tenant, token, exclusive = (
        argument(key, getattr(asked, key))
        for key in ('class_', 'name', 'tenant', 'token', 'exclusive'))
    start_inactive, adaptable, requeue = (
        flag(key, getattr(asked, key)) for key in ('start_inactive', 'adaptable', 'requeue'))
    return library.Options(
        ctypes.sizeof(library.Options), lease_class, name, tenant, token, usec('wait', asked.wait),
        start_inactive, adaptable, whole('process_fd', asked.process_fd, -1, 2**31 - 1),
        exclusive, requeue, False, _duration(asked.duration))
