# SPDX-License-Identifier: LGPL-2.1-or-later
"""Changes of GPUs and leases, as they happen."""

import os
import queue
import threading
from ctypes import c_void_p
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, AsyncGenerator, Callable, Iterator, Optional, Type, Union

from . import library
from .errors import Error
from .handle import Handle
from .library import lib, text

if TYPE_CHECKING:
    import asyncio


@dataclass(frozen=True)
class Change:
    """kind is 'watching', 'lease-added', 'lease-changed', 'lease-removed', 'gpu-added',
    'gpu-changed', 'gpu-removed', 'daemon-gone' or 'daemon-back'. gpuarb.h explains them at
    gpuarb_watch()."""
    kind: str
    lease: Optional[int] = None  # the id of the lease
    gpu: Optional[str] = None  # the name of the GPU


_Item = Union[Change, Error, None]


class _Follower:
    """A thread that calls gpuarb_watch_until() on a handle of its own. put() receives each change
    in this thread, and in the end None or an error."""

    def __init__(self, put: Callable[[_Item], object]) -> None:
        self._handle = Handle()
        self._stop_read, self._stop_write = os.pipe2(os.O_CLOEXEC)
        self._put = put
        self._thread = threading.Thread(target=self._run, name='gpuarb-watch', daemon=True)
        self._thread.start()

    def _changed(self, kind: bytes, what: bytes, _: c_void_p) -> None:
        name, value = text(kind), text(what)
        self._put(Change(name, int(value) if name.startswith('lease-') else None,
                         value if name.startswith('gpu-') else None))

    def _run(self) -> None:
        try:
            self._handle.call(lib.gpuarb_watch_until, self._handle.pointer, self._stop_read,
                              library.FOREVER, library.Changed(self._changed), None)
            self._put(None)
        except Error as error:
            self._put(error)

    def stop(self) -> None:
        """Ends the thread and waits for it. A forked child shares the pipe with the thread of its
        parent: it only closes its copy."""
        if not self._handle.inherited:
            os.write(self._stop_write, b'\0')
            self._thread.join()
        os.close(self._stop_read)
        os.close(self._stop_write)
        self._handle.leave()


class Watch:
    """An iterator of changes of GPUs and leases. A thread follows them until close().

        with gpuarb.Watch() as changes:
            for change in changes:
                print(change.kind, change.lease)

    The first change has the kind 'watching'. With a timeout, the iterator ends when there was no
    change for so many seconds, and can be used again."""

    def __init__(self, timeout: Optional[float] = None) -> None:
        self._timeout = timeout
        self._items: 'queue.SimpleQueue[_Item]' = queue.SimpleQueue()
        self._follower: Optional[_Follower] = _Follower(self._items.put)

    def __enter__(self) -> 'Watch':
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def __iter__(self) -> Iterator[Change]:
        return self

    def __next__(self) -> Change:
        if not self._follower:
            raise StopIteration
        try:
            item = self._items.get(timeout=self._timeout)
        except queue.Empty:
            raise StopIteration from None
        if isinstance(item, Error):
            self.close()
            raise item
        if item is None:
            raise StopIteration
        return item

    def close(self) -> None:
        follower, self._follower = self._follower, None
        if follower:
            follower.stop()
            self._items.put(None)

    def __del__(self) -> None:
        if hasattr(self, '_follower'):
            self.close()


async def watch_async() -> AsyncGenerator[Change, None]:
    """The same for asyncio:

        async with contextlib.aclosing(gpuarb.watch_async()) as changes:
            async for change in changes:
                print(change.kind)
    """
    import asyncio

    loop = asyncio.get_running_loop()
    items: 'asyncio.Queue[_Item]' = asyncio.Queue()
    follower = _Follower(lambda item: loop.call_soon_threadsafe(items.put_nowait, item))
    try:
        while (item := await items.get()) is not None:
            if isinstance(item, Error):
                raise item
            yield item
    finally:
        follower.stop()


async def readable(loop: 'asyncio.AbstractEventLoop', *descriptors: int) -> None:
    """Waits until one of the file descriptors is readable."""
    done = loop.create_future()
    for fd in descriptors:
        loop.add_reader(fd, _resolve, done)
    try:
        await done
    finally:
        for fd in descriptors:
            loop.remove_reader(fd)


def _resolve(done: 'asyncio.Future[None]') -> None:
    if not done.done():
        done.set_result(None)
