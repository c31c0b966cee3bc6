#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The metrics that gpuarb-exporter makes of a snapshot and of counters, and its HTTP. By the Python
of Debian, which has python3-prometheus-client."""

import asyncio
import os
import socket
import sys
import unittest
from typing import Any, Optional, Tuple
from unittest import mock

try:
    import exporter
    from prometheus_client import CollectorRegistry
    from prometheus_client.exposition import choose_encoder
except ImportError as error:
    print(f'skipped: {error} (python3-prometheus-client)')
    sys.exit(77)

import gpuarb

# A name that no configuration allows: a daemon on another machine may differ.
NAME = '<b>"lab\\n"</b>\nx{y="1"} 1'
ESCAPED = '<b>\\"lab\\\\n\\"</b>\\nx{y=\\"1\\"} 1'
ONE, OTHER = '0000:03:00.0', '0000:04:00.0'


def made(kind: Any, **values: Any) -> Any:
    """An object of which the other fields are 0."""
    return kind(**{**dict.fromkeys(kind.__annotations__, 0), **values})


def gpu(name: str, **values: Any) -> Any:
    return made(gpuarb.Gpu, **{'name': name, 'unmanaged': (), 'covers': (), 'driver_events': (),
                               'masks_observed': None, 'fairness': None, **values})


def lease(number: int, mask: int, **values: Any) -> Any:
    part = made(gpuarb.Partition, gpu=ONE, cus=mask.bit_count(), cu_mask=(mask,))
    return made(gpuarb.LeaseInfo, **{'id': number, 'class_': 'besteffort', 'state': 'granted',
                                     'tenant': NAME, 'partitions': (part,), 'drift': (),
                                     'intruders': (), 'since': None, **values})


def snapshot(*leases: Any, gpus: Any = (gpu(ONE),), tenants: Any = (NAME,)) -> Any:
    return made(gpuarb.Snapshot, version=NAME, tenants=tenants, gpus=gpus, leases=leases)


def text(taken: Any, counters: Optional[gpuarb.Counters] = None, accept: str = '',
         now: float = 100.0) -> str:
    registry = CollectorRegistry()
    registry.register(exporter.Metrics(taken, counters, now))
    return choose_encoder(accept)[0](registry).decode()


class Metrics(unittest.TestCase):
    def test_names_are_escaped_and_buckets_add_up(self) -> None:
        counters = gpuarb.Counters(1700000000, (
            gpuarb.TenantCounters(NAME, 7, 0, 0, 0, 0, 0, {'cus': 3}),
            gpuarb.TenantCounters('', 0, 0, 0, 0, 5, 0, {}),
        ), {'wait': gpuarb.Duration((0.0015, 2.0), (1, 2, 4), 9.5),
            'of a newer daemon': gpuarb.Duration((0.0015, 2.0), (1, 2, 4), 9.5)})
        for accept in ('', 'application/openmetrics-text'):
            found = text(snapshot(), counters, accept)
            self.assertIn(f'\ngpuarb_version{{version="{ESCAPED}"}} 1.0\n', found)
            self.assertIn(f'\ngpuarb_tenant_grants_total{{tenant="{ESCAPED}"}} 7.0\n', found)
            self.assertIn('\ngpuarb_tenant_refusals_total'
                          f'{{reason="cus",tenant="{ESCAPED}"}} 3.0\n', found)
            self.assertIn('\ngpuarb_tenant_moves_total{tenant=""} 5.0\n', found)
            self.assertIn('\ngpuarb_start_time_seconds 1.7e+09\n', found)
            self.assertIn('\ngpuarb_wait_seconds_bucket{le="0.0015"} 1.0\n'
                          'gpuarb_wait_seconds_bucket{le="2.0"} 3.0\n'
                          'gpuarb_wait_seconds_bucket{le="+Inf"} 7.0\n'
                          'gpuarb_wait_seconds_count 7.0\ngpuarb_wait_seconds_sum 9.5\n', found)
            self.assertNotIn('newer', found)
            self.assertNotIn('gpuarb_decision_seconds', found)

    def test_an_older_gpuarbd_has_no_counters_and_the_other_metrics(self) -> None:
        found = text(snapshot())
        self.assertIn('gpuarb_up 1.0\n', found)
        self.assertNotIn('_total{', found)
        self.assertEqual(text(None).splitlines()[2:], ['gpuarb_up 0.0'])

    def test_what_is_borrowed_and_what_is_used_without_a_partition_is_counted(self) -> None:
        def cover(lease: int, mask: int, **values: int) -> Any:
            return made(gpuarb.Cover, lease=lease, cu_mask=(mask,), **values)

        gpus = (gpu(ONE), gpu(OTHER, masks_observed=1.0, covers=(
            cover(1, 0, cus=6, queues=2), cover(0, 0x0f), cover(0, 0x18))))
        for state in ('inactive', 'activating'):
            found = text(snapshot(lease(1, 0xff, class_='realtime', state=state), lease(2, 0x7f0),
                                  gpus=gpus))
            for line in (f'tenant_cus_borrowed{{gpu="{ONE}",tenant="{ESCAPED}"}} 4.0',
                         f'tenant_cus_observed{{gpu="{OTHER}",tenant="{ESCAPED}"}} 6.0',
                         f'tenant_queues_observed{{gpu="{OTHER}",tenant="{ESCAPED}"}} 2.0',
                         f'tenant_leases{{gpu="{ONE}",tenant="{ESCAPED}"}} 2.0',
                         f'gpu_unmanaged_cus{{gpu="{OTHER}"}} 5.0'):
                self.assertIn(f'\ngpuarb_{line}\n', found)
            self.assertNotIn(f'gpuarb_gpu_unmanaged_cus{{gpu="{ONE}', found)
        self.assertIn(f'tenant_cus_borrowed{{gpu="{ONE}",tenant="{ESCAPED}"}} 0.0',
                      text(snapshot(lease(1, 0xff, class_='realtime'), lease(2, 0x7f0))))

    def test_a_lease_on_a_gpu_that_has_gone_is_no_use_of_a_gpu(self) -> None:
        found = text(snapshot(lease(1, 0xff), gpus=(gpu(OTHER),)))
        self.assertIn('\ngpuarb_leases{state="granted"} 1.0\n', found)
        self.assertNotIn(ONE, found)

    def test_the_first_of_those_that_wait_counts(self) -> None:
        waiting = [lease(i, 0, state='waiting', partitions=(), since=since)
                   for i, since in ((1, 70.0), (2, 40.0), (3, 110.0), (4, None))]
        found = text(snapshot(*waiting))
        self.assertIn(f'\ngpuarb_tenant_waiting_leases{{tenant="{ESCAPED}"}} 4.0\n', found)
        self.assertIn(f'\ngpuarb_tenant_waiting_seconds{{tenant="{ESCAPED}"}} 60.0\n', found)
        self.assertIn('\ngpuarb_leases{state="waiting"} 4.0\n', found)

    def test_tenants_beyond_the_limit_are_counted_together(self) -> None:
        tenants = tuple(f't{i}' for i in range(exporter.TENANTS + 2))
        found = text(snapshot(*(lease(i, 0x3, tenant=name, drift=(None,))
                                for i, name in enumerate(tenants)), tenants=tenants))
        self.assertIn(f'\ngpuarb_tenant_cus{{gpu="{ONE}",tenant=""}} 4.0\n', found)
        self.assertIn('\ngpuarb_tenant_drifts{tenant=""} 2.0\n', found)
        self.assertIn('\ngpuarb_tenant_drifts{tenant="t255"} 1.0\n', found)
        self.assertNotIn('tenant="t256"', found)
        self.assertNotIn('gpuarb_tenant_waiting_leases{tenant=""}', found)


class Constant(exporter.Exporter):
    def text(self, accept: str) -> Tuple[str, bytes]:
        return 'text/x', b'metrics of ' + accept.encode()


class Http(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        served = exporter.Server()
        served.exporter = Constant()
        self.server = await asyncio.start_server(served.connected, '127.0.0.1', 0)
        port = self.server.sockets[0].getsockname()[1]
        self.reader, self.writer = await asyncio.open_connection('127.0.0.1', port)

    async def asyncTearDown(self) -> None:
        self.writer.close()
        self.server.close()

    async def answers(self, data: bytes) -> bytes:
        """What comes up to the end of the connection."""
        self.writer.write(data)
        return await asyncio.wait_for(self.reader.read(), 60)

    async def test_requests_of_one_connection_are_answered_in_turn_until_one_ends_it(self) -> None:
        kept = (b'HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 13\r\n'
                b'Connection: keep-alive\r\n\r\n')
        self.assertEqual(
            await self.answers(b'GET /metrics?x=1 HTTP/1.1\r\naccept:  xy \r\n\r\n'
                               b'HEAD /metrics HTTP/1.1\r\nAccept: xy\r\n\r\n'
                               b'POST /metrics HTTP/1.1\r\n\r\n'
                               b'GET / HTTP/1.1\r\nConnection: Close\r\n\r\n'),
            kept + b'metrics of xy' + kept +
            b'HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain\r\n'
            b'Content-Length: 17\r\nConnection: keep-alive\r\n\r\nuse GET /metrics\n'
            b'HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n'
            b'Content-Length: 28\r\nConnection: close\r\n\r\nthe metrics are at /metrics\n')

    async def test_what_is_uploaded_is_no_request(self) -> None:
        for head in (b'Content-Length: 25', b'Content-Length: +25', b'Transfer-Encoding: chunked',
                     b'Content-Length: 25\r\nContent-Length: 0'):
            with self.subTest(head=head):
                answer = await self.answers(b'POST /metrics HTTP/1.1\r\n' + head + b'\r\n\r\n'
                                            b'GET /metrics HTTP/1.1\r\n\r\n')
                self.assertEqual(answer.count(b'HTTP/1.1 405 '), 1)
                self.assertNotIn(b' 200 ', answer)
            await self.asyncTearDown()
            await self.asyncSetUp()

    async def test_an_older_client_has_one_answer(self) -> None:
        self.assertTrue((await self.answers(b'GET /metrics HTTP/1.0\r\n\r\n')).endswith(
            b'Connection: close\r\n\r\nmetrics of '))

    async def test_a_head_without_end_ends_the_connection(self) -> None:
        with self.assertRaises(ConnectionError):  # reset: not all of it was read
            self.assertEqual(await self.answers(b'x' * 1000000), b'')
            raise ConnectionResetError

    async def test_a_length_of_too_many_digits_ends_the_connection(self) -> None:
        head = b'GET /metrics HTTP/1.1\r\nContent-Length: ' + b'9' * 5000
        with self.assertNoLogs('asyncio'):
            self.assertEqual(await self.answers(head + b'\r\n\r\n'), b'')
            await asyncio.sleep(0)

    async def test_a_client_that_goes_is_forgotten(self) -> None:
        self.writer.write(b'POST /metrics HTTP/1.1\r\nContent-Length: 9\r\n\r\nx')
        self.writer.write_eof()
        self.assertEqual(await asyncio.wait_for(self.reader.read(), 60), b'')

    async def test_what_is_no_request_is_refused(self) -> None:
        self.assertTrue((await self.answers(b'nonsense\r\n\r\n')).startswith(b'HTTP/1.1 405 '))


class Manager(unittest.TestCase):
    def test_the_service_manager_learns_that_it_serves(self) -> None:
        name = f'gpuarb-test-{os.getpid()}'
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind('\0' + name)
            with mock.patch.dict(os.environ, NOTIFY_SOCKET='@' + name):
                exporter.notify_ready()
            self.assertEqual(manager.recv(64), b'READY=1')


if __name__ == '__main__':
    unittest.main()
