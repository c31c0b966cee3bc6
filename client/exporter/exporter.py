#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""gpuarb-exporter: serves the metrics of gpuarbd over HTTP, for Prometheus. systemd passes the
socket, or --port names one of 127.0.0.1. A scrape takes a snapshot; between scrapes the program
sleeps."""

import argparse
import asyncio
import errno
import os
import signal
import socket
import sys
import time
from collections import Counter, defaultdict
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

import gpuarb

VERSION = '@VERSION@'
TENANTS = 256  # further ones are counted together, with tenant=""
PATH = '/metrics'
TEXT = 'text/plain; version=0.0.4; charset=utf-8'
OPEN = 'application/openmetrics-text; version=1.0.0; charset=utf-8'
WRITERS: Dict[str, Callable[[CollectorRegistry], bytes]] = {
    TEXT: generate_latest, OPEN: openmetrics.generate_latest}
CLIENTS = 48  # from so many on, each new one replaces the one that takes longest
PHASE = 10.0  # seconds for sending a request, and again for reading its answer
FRESH = 1.0  # scrapes within this time share a snapshot
ANSWER = 3.0  # of a gpuarbd that restarts or hangs, for each call: Prometheus waits for 10 s


# ---- metrics -------------------------------------------------------------------------------------

STATES = ('waiting', 'granted', 'inactive', 'activating', 'revoking', 'ending')

# Names after gpuarb_gpu_, what they mean, and the value, None: unknown.
GPU: Tuple[Tuple[str, str, Callable[[gpuarb.Gpu], Optional[float]]], ...] = (
    ('cus', 'Compute units of the GPU.', lambda gpu: gpu.cus),
    ('cus_free', 'Compute units in no mask of a lease.', lambda gpu: gpu.cus_free),
    ('queue_slots', 'Hardware queue slots.', lambda gpu: gpu.queue_slots),
    ('queue_slots_free', 'Hardware queue slots that can be granted.',
     lambda gpu: gpu.queue_slots_free),
    ('process_slots', 'Process slots (VMIDs).', lambda gpu: gpu.process_slots),
    ('process_slots_free', 'Process slots that can be granted.',
     lambda gpu: gpu.process_slots_free),
    ('vram_bytes', 'Memory of the GPU.', lambda gpu: gpu.vram_bytes),
    ('vram_free_bytes', 'Memory that can be granted.', lambda gpu: gpu.vram_free),
    ('vram_pressure', '1: its memory runs short.', lambda gpu: gpu.vram_pressure),
    ('unmanaged_processes', 'Processes with queues and without a lease, at most 64.',
     lambda gpu: len(gpu.unmanaged)),
    ('unmanaged_cus', 'Compute units that queues of processes without a lease cover.',
     lambda gpu: unmanaged_cus(gpu)),
    ('oversubscribed', '1: more is in use than the GPU has.', lambda gpu: gpu.oversubscribed),
    ('draining', '1: an administrator has stopped new grants.', lambda gpu: gpu.draining),
    ('fairness_ratio', 'How equally adaptable leases share the GPU; 1: equally.',
     lambda gpu: gpu.fairness),
)

# Names after gpuarb_tenant_: what the leases of a tenant have, and their processes use, on a GPU.
USES = {
    'leases': 'Leases with a partition of the GPU.',
    'leases_paused': 'Leases that are paused on the GPU.',
    'cus': 'Compute units that were granted.',
    'cus_borrowed': 'Compute units that inactive leases lend it.',
    'cus_observed': 'Compute units that queues of processes cover.',
    'queues': 'Hardware queues that were granted.',
    'queues_observed': 'Hardware queues that were observed.',
    'processes': 'Processes that were granted.',
    'vram_bytes': 'Memory that was granted.',
}

# What the leases of a tenant are on the whole machine.
LEASES = {
    'waiting_leases': 'Leases that wait.',
    'waiting_seconds': 'How long the first of them waits.',
    'drifts': 'Ways in which leases exceed what they were granted.',
    'disturbed_leases': 'Leases on whose CUs queues of others are.',
}

# Counters, and their members in gpuarb.TenantCounters.
EVENTS = (
    ('grants', 'grants', 'Leases that were granted.'),
    ('waits', 'waits', 'Leases that began to wait.'),
    ('revocations', 'revocations', 'Leases that their holders did not end.'),
    ('preemptions', 'preemptions', 'Leases that were revoked for a waiting lease.'),
    ('moves', 'moves', 'Moves of leases to other CUs, for another lease.'),
    ('drift_events', 'drifts', 'Times that a lease began to use more than granted.'),
)

DURATIONS = {
    'decision': 'How long gpuarbd took to decide about a request.',
    'activation': 'How long leases waited for CUs that others had borrowed.',
    'wait': 'How long leases waited for their grant.',
}


def mask_of(words: Iterable[int]) -> int:
    return sum(word << 32 * i for i, word in enumerate(words))


def unmanaged_cus(gpu: gpuarb.Gpu) -> Optional[int]:
    if gpu.masks_observed is None:
        return None
    mask = 0
    for cover in gpu.covers:
        mask |= 0 if cover.lease else mask_of(cover.cu_mask)
    return mask.bit_count()


def lends(lease: gpuarb.LeaseInfo) -> bool:
    """Whether other leases may have its CUs: it lends them, or has not got all of them back."""
    return lease.class_ == 'realtime' and lease.state in ('inactive', 'activating')


class Metrics(Collector):
    """The metrics of a snapshot, as prometheus_client collects them. snapshot None: gpuarbd is
    away; counters None: it has none. now: of CLOCK_BOOTTIME."""

    def __init__(self, snapshot: Optional[gpuarb.Snapshot], counters: Optional[gpuarb.Counters],
                 now: float) -> None:
        self.snapshot = snapshot
        self.counters = counters
        self.now = now
        self.known = snapshot.tenants[:TENANTS] if snapshot else ()

    def tenant(self, name: str) -> str:
        return name if name in self.known else ''

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily('gpuarb_up', '1: gpuarbd has answered.', bool(self.snapshot))
        if not self.snapshot:
            return
        version = GaugeMetricFamily(
            'gpuarb_version', 'Always 1; the label has the version of gpuarbd.',
            labels=['version'])
        version.add_metric([self.snapshot.version], 1)
        yield version
        yield from self.of_gpus(self.snapshot.gpus)
        yield from self.of_leases(self.snapshot.leases)
        yield from self.of_uses(self.snapshot)
        if self.counters:
            yield from self.of_counters(self.counters)

    @staticmethod
    def of_gpus(gpus: Iterable[gpuarb.Gpu]) -> Iterator[Metric]:
        for name, about, value in GPU:
            gauge = GaugeMetricFamily(f'gpuarb_gpu_{name}', about, labels=['gpu'])
            for gpu in gpus:
                number = value(gpu)
                if number is not None:
                    gauge.add_metric([gpu.name], number)
            yield gauge
        events = CounterMetricFamily(
            'gpuarb_gpu_driver_events', 'Events of the driver since gpuarbd was started.',
            labels=['gpu', 'kind'])
        for gpu in gpus:
            for kind, count in gpu.driver_events:
                events.add_metric([gpu.name, kind], count)
        yield events

    def of_leases(self, leases: Iterable[gpuarb.LeaseInfo]) -> Iterator[Metric]:
        states = Counter(lease.state for lease in leases)
        gauge = GaugeMetricFamily('gpuarb_leases', 'Leases by state.', labels=['state'])
        for state in STATES:
            gauge.add_metric([state], states[state])
        yield gauge
        found: Dict[str, Dict[str, float]] = {name: defaultdict(float) for name in LEASES}
        for lease in leases:
            tenant = self.tenant(lease.tenant)
            found['drifts'][tenant] += len(lease.drift)
            found['disturbed_leases'][tenant] += bool(lease.intruders)
            if lease.state == 'waiting':
                found['waiting_leases'][tenant] += 1
                waited = self.now - (lease.since or self.now)
                found['waiting_seconds'][tenant] = max(found['waiting_seconds'][tenant], waited)
        for name, about in LEASES.items():
            gauge = GaugeMetricFamily(f'gpuarb_tenant_{name}', about, labels=['tenant'])
            for tenant in (*self.known, *([''] if found[name][''] > 0 else [])):
                gauge.add_metric([tenant], found[name][tenant])
            yield gauge

    def of_uses(self, snapshot: gpuarb.Snapshot) -> Iterator[Metric]:
        uses: Dict[Tuple[str, str], 'Counter[str]'] = {}
        tenants = {lease.id: lease.tenant for lease in snapshot.leases}
        lent: 'Counter[str]' = Counter()

        def use(gpu: str, tenant: str) -> 'Counter[str]':
            return uses.setdefault((gpu, self.tenant(tenant)), Counter())

        gpus = {gpu.name for gpu in snapshot.gpus}  # a lease can be left on one that has gone
        parts = [(lease, part) for lease in snapshot.leases for part in lease.partitions
                 if part.gpu in gpus]
        for lease, part in parts:
            lent[part.gpu] |= mask_of(part.cu_mask) if lends(lease) else 0
            use(part.gpu, lease.tenant).update(
                leases=1, leases_paused=part.paused, cus=part.cus, queues=part.queues,
                processes=part.processes, vram_bytes=part.vram)
        for lease, part in parts:
            if not lends(lease):
                use(part.gpu, lease.tenant)['cus_borrowed'] += (
                    lent[part.gpu] & mask_of(part.cu_mask)).bit_count()
        for gpu in snapshot.gpus:
            for cover in gpu.covers:
                if cover.lease:
                    use(gpu.name, tenants.get(cover.lease, '')).update(
                        cus_observed=cover.cus, queues_observed=cover.queues)
        for name, about in USES.items():
            gauge = GaugeMetricFamily(f'gpuarb_tenant_{name}', about, labels=['gpu', 'tenant'])
            for place, numbers in uses.items():
                if any(numbers.values()):
                    gauge.add_metric(place, numbers[name])
            yield gauge

    @staticmethod
    def of_counters(counters: gpuarb.Counters) -> Iterator[Metric]:
        yield GaugeMetricFamily('gpuarb_start_time_seconds',
                                'When gpuarbd was started, since 1970.', counters.since)
        for name, member, about in EVENTS:
            counter = CounterMetricFamily(f'gpuarb_tenant_{name}', about, labels=['tenant'])
            for row in counters.tenants:
                counter.add_metric([row.tenant], getattr(row, member))
            yield counter
        counter = CounterMetricFamily('gpuarb_tenant_refusals', 'Requests that were refused.',
                                      labels=['tenant', 'reason'])
        for row in counters.tenants:
            for reason, count in row.refusals.items():
                counter.add_metric([row.tenant, reason], count)
        yield counter
        for name, about in DURATIONS.items():
            if name in counters.durations:
                yield histogram(f'gpuarb_{name}_seconds', about, counters.durations[name])


def histogram(name: str, about: str, duration: gpuarb.Duration) -> Metric:
    count = 0
    buckets: List[Tuple[str, float]] = []
    for bound, more in zip((*map(str, duration.bounds), '+Inf'), duration.counts):
        count += more
        buckets.append((bound, count))
    return HistogramMetricFamily(name, about, buckets, duration.sum)


# ---- scrapes -------------------------------------------------------------------------------------

class Exporter:
    """Takes snapshots, and has the texts of the last one."""

    def __init__(self) -> None:
        self.arbiter: Optional[gpuarb.Arbiter] = None
        self.registry = CollectorRegistry()
        self.texts: Dict[str, bytes] = {}  # by their types
        self.fresh_until = 0.0
        self.failed = False  # and reported

    def take(self) -> Tuple[Optional[gpuarb.Snapshot], Optional[gpuarb.Counters]]:
        """None: gpuarbd is away, which is reported the first time; or it has no counters."""
        try:
            if not self.arbiter:
                self.arbiter = gpuarb.Arbiter()
                self.arbiter.set_timeout(ANSWER)
            snapshot = self.arbiter.snapshot()
        except gpuarb.Error as error:
            if not self.failed:
                print(f'no snapshot: {error.strerror}', file=sys.stderr, flush=True)
            self.failed = True
            return None, None
        self.failed = False
        try:
            return snapshot, self.arbiter.counters()
        except gpuarb.Error:
            return snapshot, None

    def text(self, accept: str) -> Tuple[str, bytes]:
        """The type and the text of the answer."""
        kind = OPEN if OPEN.partition(';')[0] in accept else TEXT
        if time.monotonic() >= self.fresh_until:
            snapshot, counters = self.take()
            self.registry = CollectorRegistry()
            self.registry.register(
                Metrics(snapshot, counters, time.clock_gettime(time.CLOCK_BOOTTIME)))
            self.texts.clear()
            self.fresh_until = time.monotonic() + FRESH if snapshot else 0.0
        if kind not in self.texts:
            self.texts[kind] = WRITERS[kind](self.registry)
        return kind, self.texts[kind]


# ---- HTTP ----------------------------------------------------------------------------------------

class Request:
    """A request of HTTP, without what the client uploads."""

    def __init__(self, head: str) -> None:
        first, *lines = head.split('\r\n')
        self.method, self.path, self.protocol = (first.split(' ') + ['', ''])[:3]
        pairs = (line.partition(':') for line in lines)
        self.headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        length = self.headers.get('content-length', '0')
        self.length = int(length) if length.isdecimal() else 0
        # There are more ways to tell where an upload ends: no request is searched for after one.
        uploads = self.headers.keys() & {'content-length', 'transfer-encoding'}
        connection = self.headers.get('connection', '').lower()
        self.stays = not uploads and connection != 'close' and (
            self.protocol == 'HTTP/1.1' or connection == 'keep-alive')


async def read_request(reader: asyncio.StreamReader) -> Request:
    request = Request((await reader.readuntil(b'\r\n\r\n')).decode('latin-1'))
    left = request.length
    while left > 0:
        data = await reader.read(min(left, 65536))
        if not data:
            raise EOFError
        left -= len(data)
    return request


class Server:
    """The clients that are connected, each with the time at which it began to send its request, or
    to read the answer."""

    def __init__(self) -> None:
        self.exporter = Exporter()
        self.clients: Dict['asyncio.Task[Any]', float] = {}

    def answer(self, request: Request) -> bytes:
        status, kind = '200 OK', 'text/plain'
        if request.method not in ('GET', 'HEAD'):
            status, text = '405 Method Not Allowed', f'use GET {PATH}\n'.encode()
        elif request.path.partition('?')[0] != PATH:
            status, text = '404 Not Found', f'the metrics are at {PATH}\n'.encode()
        else:
            kind, text = self.exporter.text(request.headers.get('accept', ''))
        head = (f'HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\n'
                f'Connection: {"keep-alive" if request.stays else "close"}\r\n\r\n').encode()
        return head if request.method == 'HEAD' else head + text

    async def serve(self, task: 'asyncio.Task[Any]', reader: asyncio.StreamReader,
                    writer: asyncio.StreamWriter) -> None:
        stays = True
        while stays:
            self.clients[task] = time.monotonic()
            async with asyncio.timeout(PHASE):
                request = await read_request(reader)
            stays = request.stays
            writer.write(self.answer(request))
            self.clients[task] = time.monotonic()
            async with asyncio.timeout(PHASE):
                await writer.drain()
            await asyncio.sleep(0)  # a client with many requests lets others have an answer

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        if len(self.clients) >= CLIENTS:
            longest = min(self.clients, key=lambda client: self.clients[client])
            del self.clients[longest]
            longest.cancel()
        writer.transport.set_write_buffer_limits(0)  # drain() waits until the kernel has all
        try:
            await self.serve(task, reader, writer)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # it was too slow, sent too much, was replaced, or has gone
        finally:
            self.clients.pop(task, None)
            writer.transport.abort()


# ---- the program ---------------------------------------------------------------------------------

def notify_ready() -> None:
    path = os.environ.get('NOTIFY_SOCKET')
    if path:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.sendto(b'READY=1', path.replace('@', '\0', 1) if path[0] == '@' else path)


async def serve(listening: socket.socket) -> None:
    end = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    server = await asyncio.start_server(Server().connected, sock=listening)
    notify_ready()
    await end.wait()
    server.close()


def passed_sockets() -> int:
    """How many systemd passes to this process, from descriptor 3 on."""
    mine = os.environ.get('LISTEN_PID') == str(os.getpid())
    return int(os.environ.get('LISTEN_FDS', '0')) if mine else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog='gpuarb-exporter', allow_abbrev=False,
        description=f'Serves the metrics of gpuarbd at http://ADDRESS{PATH}, on the socket that '
                    'systemd passes.')
    parser.add_argument('--port', help='serve on this port of 127.0.0.1, if systemd passes no '
                                       'socket')
    parser.add_argument('--version', action='version', version=f'gpuarb-exporter {VERSION}')
    port = parser.parse_args().port
    if port is not None and not (port.isdecimal() and 0 < int(port) < 65536):
        parser.error(f'--port={port}: must be a number from 1 to 65535')
    try:
        n = passed_sockets()
        if n > 1:
            raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))
        if n == 0 and port is None:
            parser.error('no socket from systemd: start gpuarb-exporter.socket, or use --port')
        listening = socket.socket(fileno=3) if n else socket.create_server(('127.0.0.1', int(port)))
    except OSError as error:
        print(f'no socket: {error.strerror}', file=sys.stderr)
        return 1
    asyncio.run(serve(listening))
    return 0


if __name__ == '__main__':
    sys.exit(main())
