#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""gpuarb-exporter on a socket of the test, with gpuarbd and two simulated GPUs; promtool and
Prometheus of Debian judge its answers. GPUARB_EXPORTER is the program."""

import contextlib
import errno
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Set, Tuple

import rig

import gpuarb

PROGRAM = os.environ.get('GPUARB_EXPORTER', '')
OPEN = 'application/openmetrics-text'
CROWD = 48  # clients from which on a new one replaces another
SCRAPE = 10.0  # for which Prometheus waits
MONITORING = rig.SOURCE / 'docs/monitoring'


class Exporter:
    """The program on a socket that the test listens on, as systemd starts it."""

    def __init__(self) -> None:
        self.socket = socket.create_server(('127.0.0.1', 0))
        self.port = self.socket.getsockname()[1]
        fd = self.socket.fileno()
        # The end may come before the program listens for it: it then finds the signal waiting.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        self.process = subprocess.Popen(
            ['/bin/sh', '-c', f'LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" 3<&{fd}', PROGRAM],
            pass_fds=[fd], stderr=subprocess.PIPE, text=True)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def get(self, accept: str = '', path: str = '/metrics', data: Optional[bytes] = None,
            seconds: float = rig.SECONDS) -> Tuple[str, str]:
        """The type and the text of the answer."""
        request = urllib.request.Request(f'http://127.0.0.1:{self.port}{path}', data,
                                         {'Accept': accept})
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            return answer.headers['Content-Type'], answer.read().decode()

    def close(self) -> Tuple[int, str]:
        self.process.terminate()
        errors = self.process.communicate(timeout=rig.SECONDS)[1]
        self.socket.close()
        return self.process.returncode, errors


def values(text: str) -> Dict[str, float]:
    return {name: float(value) for name, value in
            re.findall(r'^(gpuarb_[^ ]+) (\S+)$', text, re.M)}


def until(ask: Callable[[], Any]) -> Any:
    """The first answer that is true."""
    end = time.monotonic() + rig.SECONDS
    while time.monotonic() < end:
        answer = ask()
        if answer:
            return answer
    raise AssertionError(f'not within {rig.SECONDS:.0f} s')


def promtool(*arguments: str, **options: Any) -> 'subprocess.CompletedProcess[str]':
    done: 'subprocess.CompletedProcess[str]' = subprocess.run(
        ['promtool', *arguments], capture_output=True, text=True, timeout=rig.SECONDS, **options)
    return done


def families(text: str) -> Set[str]:
    """The names of all metrics as rules use them."""
    return {name + ('_total' if kind == 'counter' and not name.endswith('_total') else '')
            for name, kind in re.findall(r'^# TYPE (\w+) (\w+)', text, re.M)}


class Metrics(rig.MachineTest):
    simulate = 'radeon-vii,v620'

    def setUp(self) -> None:
        self.exporter = Exporter()

    def tearDown(self) -> None:
        self.assertEqual(self.exporter.close(), (0, ''))

    def test_a_scrape_has_gpus_tenants_and_waiting_leases(self) -> None:
        with gpuarb.reserve(cus=30, gpu=0, queues=3), \
                gpuarb.Arbiter() as arbiter, arbiter.reserve_start(cus=60, gpu=0, wait=60):
            kind, text = self.exporter.get()
            open_kind, open_text = self.exporter.get(OPEN)
        self.assertTrue(kind.startswith('text/plain; version=0.0.4'))
        self.assertTrue(open_kind.startswith(OPEN + '; version=1.0.0'))
        self.assertTrue(open_text.endswith('\n# EOF\n'))
        self.assertNotIn('# EOF', text)
        found = values(text)
        labels = '{gpu="0000:03:00.0",tenant="lab"}'
        self.assertEqual(found[f'gpuarb_tenant_cus{labels}'], 30)
        self.assertEqual(found[f'gpuarb_tenant_queues{labels}'], 3)
        self.assertEqual(found['gpuarb_up'], 1)
        self.assertEqual(found['gpuarb_gpu_cus_free{gpu="0000:03:00.0"}'], 30)
        self.assertEqual(found['gpuarb_gpu_cus{gpu="0000:04:00.0"}'], 72)
        self.assertEqual(found['gpuarb_leases{state="waiting"}'], 1)
        self.assertEqual(found['gpuarb_tenant_waiting_leases{tenant="lab"}'], 1)
        done = promtool('check', 'metrics', input=text)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ''))
        self.parse(open_text)

    def test_rules_and_dashboard_name_metrics_that_exist(self) -> None:
        with gpuarb.reserve(cus=30):
            text = self.exporter.get()[1]
        exported = families(self.exporter.get(OPEN)[1])
        self.assertEqual(exported, families(text))
        manual = (rig.SOURCE / 'docs/gpuarb-exporter.8.scd').read_text()
        self.assertEqual(exported, set(re.findall(r'\bgpuarb_\w+[a-z]\b', manual)))
        self.assertIn('gpuarb_tenant_cus{', text)
        for name in ('gpuarb.rules.yml', 'gpuarb-dashboard.json'):
            named = set(re.findall(r'\bgpuarb_\w+', (MONITORING / name).read_text()))
            self.assertGreater(len(named), 5)
            self.assertLessEqual({re.sub('_bucket$', '', metric) for metric in named}, exported)
        json.loads((MONITORING / 'gpuarb-dashboard.json').read_text())
        done = promtool('check', 'rules', str(MONITORING / 'gpuarb.rules.yml'))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_counters_and_histograms_have_what_happened(self) -> None:
        before = values(self.exporter.get()[1])
        with gpuarb.reserve(cus=40, gpu=0), gpuarb.Arbiter() as arbiter:
            with self.assertRaises(gpuarb.NoCapacity):
                arbiter.reserve(cus=60, gpu=0)
            waiting = arbiter.reserve_start(cus=60, gpu=0, wait=60)
            number = waiting.id
        waiting.wait(rig.SECONDS)
        with gpuarb.Arbiter() as arbiter:
            arbiter.revoke(number, 0)
            counters = arbiter.counters()
        waiting.close()
        self.tearDown()  # scrapes of one exporter share a snapshot for a second
        self.setUp()
        after = values(self.exporter.get()[1])
        lab = '{tenant="lab"}'
        grew = {name: after[name] - before[name] for name in before}
        for name, number in (('grants', 2), ('waits', 1), ('revocations', 1), ('preemptions', 0),
                             ('moves', 0), ('drift_events', 0)):
            self.assertEqual(grew[f'gpuarb_tenant_{name}_total{lab}'], number, name)
        self.assertEqual(after['gpuarb_tenant_refusals_total{reason="cus",tenant="lab"}'], 1)
        self.assertEqual(grew['gpuarb_wait_seconds_bucket{le="+Inf"}'], 1)
        self.assertEqual(grew['gpuarb_wait_seconds_count'], 1)
        self.assertEqual(grew['gpuarb_decision_seconds_count'], 3)
        self.assertGreater(grew['gpuarb_decision_seconds_sum'], 0)
        tenant, = (row for row in counters.tenants if row.tenant == 'lab')
        self.assertEqual(tenant.refusals, {'cus': 1})
        self.assertEqual(tenant.grants, after[f'gpuarb_tenant_grants_total{lab}'])
        self.assertEqual(sum(counters.durations['wait'].counts), after['gpuarb_wait_seconds_count'])
        self.assertEqual(counters.since, after['gpuarb_start_time_seconds'])

    def parse(self, text: str) -> None:
        """Lets the parser of python3-prometheus-client judge OpenMetrics, which promtool cannot."""
        done = subprocess.run(
            ['/usr/bin/python3', '-c', 'import sys\n'
             'from prometheus_client.openmetrics.parser import text_string_to_metric_families\n'
             'print(len(list(text_string_to_metric_families(sys.stdin.read()))))'],
            input=text, capture_output=True, text=True, timeout=rig.SECONDS)
        self.assertEqual((done.stdout, done.stderr), (f'{len(families(text))}\n', ''))

    def test_a_client_that_never_reads_does_not_stop_others(self) -> None:
        n = CROWD - 1
        clients = [socket.create_connection(('127.0.0.1', self.exporter.port)) for _ in range(n)]
        for client in clients:
            client.setblocking(False)
            with contextlib.suppress(OSError):  # it does not read any more, or has disconnected
                while True:
                    client.send(b'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n')
        self.assertIn('gpuarb_up 1', self.exporter.get()[1])
        if os.environ.get('GPUARB_LONG'):
            for client in clients:
                end = select.poll()
                end.register(client, select.POLLRDHUP)
                self.assertTrue(end.poll(rig.SECONDS * 1000), 'still connected')
        for client in clients:
            client.close()

    def test_each_alert_fires_for_the_machine_that_has_the_problem(self) -> None:
        rules = MONITORING / 'gpuarb.rules.yml'
        tests = rig.SOURCE / 'tests/data/gpuarb.rules.test.yml'
        self.assertEqual(set(re.findall(r'- alert: (\w+)', rules.read_text())),
                         set(re.findall(r'- alertname: (\w+)', tests.read_text())))
        done = promtool('test', 'rules', str(tests))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_other_paths_and_methods_are_refused(self) -> None:
        for path, data, status in (('/', None, 404), ('/metrics', b'x' * 100000, 405)):
            with self.assertRaises(urllib.error.HTTPError) as caught:
                self.exporter.get(path=path, data=data)
            self.assertEqual(caught.exception.code, status)
            caught.exception.close()

    def connect(self) -> socket.socket:
        return socket.create_connection(('127.0.0.1', self.exporter.port), rig.SECONDS)

    def test_clients_that_send_slowly_do_not_stop_others_and_are_disconnected(self) -> None:
        clients = [self.connect() for _ in range(40)]
        ended: Set[socket.socket] = set()

        def drip() -> bool:
            """Whether all are disconnected."""
            for client in clients:
                try:
                    client.send(b'G')
                except OSError:
                    ended.add(client)
            return len(ended) == len(clients)

        for _ in range(3):
            drip()
            self.assertIn('gpuarb_up 1', self.exporter.get()[1])
        end = time.monotonic() + rig.SECONDS
        while not drip():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)
        for client in clients:
            client.close()

    def test_a_new_client_replaces_the_one_that_takes_longest(self) -> None:
        clients = []
        for _ in range(CROWD):
            clients.append(self.connect())
            clients[-1].send(b'GET /metrics HTTP/1.1\r\n')
        self.assertIn('gpuarb_up 1', self.exporter.get()[1])
        self.assertEqual(clients[0].recv(1), b'')
        clients[-1].send(b'Host: localhost\r\n\r\n')
        self.assertTrue(clients[-1].recv(4096).startswith(b'HTTP/1.1 200'))
        for client in clients:
            client.close()

    @unittest.skipUnless(os.environ.get('GPUARB_LONG') and shutil.which('prometheus'),
                         'only with tests/run --long and the package prometheus')
    def test_prometheus_scrapes_it(self) -> None:
        with socket.create_server(('127.0.0.1', 0)) as free:
            port = free.getsockname()[1]
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, 'prometheus.yml').write_text(
                'global: {scrape_interval: 1s}\n'
                f'rule_files: [{MONITORING}/gpuarb.rules.yml]\n'
                'scrape_configs:\n  - job_name: gpuarb\n    static_configs:\n'
                f'      - targets: ["127.0.0.1:{self.exporter.port}"]\n')
            server = subprocess.Popen(
                ['prometheus', f'--config.file={folder}/prometheus.yml',
                 f'--storage.tsdb.path={folder}/data', f'--web.listen-address=127.0.0.1:{port}'],
                stderr=subprocess.DEVNULL)
            try:
                self.assertEqual(self.query(port, 'sum(gpuarb_gpu_cus)'), '132')
            finally:
                server.terminate()
                server.wait(rig.SECONDS)

    @staticmethod
    def query(port: int, expression: str) -> Any:
        """The value of an expression, as soon as there is one."""
        url = f'http://127.0.0.1:{port}/api/v1/query?query={expression}'

        def ask() -> Any:
            with contextlib.suppress(OSError):  # it does not listen yet
                with urllib.request.urlopen(url, timeout=rig.SECONDS) as answer:
                    return json.load(answer)['data']['result']

        return until(ask)[0]['value'][1]


class Absent(unittest.TestCase):
    def test_scrapes_outlast_a_gpuarbd_that_hangs_and_a_new_one_counts_from_0(self) -> None:
        machine = rig.Machine()
        os.environ['GPUARB_BUS_ADDRESS'] = machine.address
        exporter = Exporter()
        gpuarb.reserve(cus=30).close()
        grants, start = 'gpuarb_tenant_grants_total{tenant="lab"}', 'gpuarb_start_time_seconds'
        first = values(exporter.get()[1])
        self.assertEqual(first[grants], 1)
        assert machine.daemon
        machine.daemon.send_signal(signal.SIGSTOP)
        try:
            until(lambda: values(exporter.get(seconds=SCRAPE)[1]) == {'gpuarb_up': 0})
        finally:
            machine.daemon.send_signal(signal.SIGCONT)
        self.assertEqual(values(exporter.get()[1])['gpuarb_up'], 1)
        machine.stop()
        machine.start()
        until(lambda: values(exporter.get()[1])[grants] == 0)
        self.assertGreaterEqual(values(exporter.get()[1])[start], first[start])
        status, errors = exporter.close()
        self.assertEqual(status, 0)
        self.assertIn('no snapshot: ', errors)
        machine.close()

    def test_gpuarbd_may_come_later(self) -> None:
        machine = rig.Machine()
        machine.stop()
        os.environ['GPUARB_BUS_ADDRESS'] = machine.address
        exporter = Exporter()
        self.assertEqual(values(exporter.get()[1]), {'gpuarb_up': 0})
        machine.start()
        self.assertEqual(values(exporter.get()[1])['gpuarb_up'], 1)
        status, errors = exporter.close()
        self.assertEqual(status, 0)
        self.assertEqual(len(errors.split('\n')), 2)
        machine.close()

    def test_a_port_of_this_host_is_served_if_it_is_free(self) -> None:
        with socket.create_server(('127.0.0.1', 0)) as taken:
            port = taken.getsockname()[1]
            done = subprocess.run([PROGRAM, f'--port={port}'], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn(os.strerror(errno.EADDRINUSE), done.stderr)
        os.environ['GPUARB_BUS_ADDRESS'] = 'unix:path=/nonexistent/bus'
        with subprocess.Popen([PROGRAM, f'--port={port}'], stderr=subprocess.DEVNULL) as process:
            def get() -> str:
                with contextlib.suppress(urllib.error.URLError):
                    url = f'http://127.0.0.1:{port}/metrics'
                    with urllib.request.urlopen(url, timeout=rig.SECONDS) as answer:
                        return str(answer.read().decode())
                return ''

            self.assertEqual(values(until(get)), {'gpuarb_up': 0})
            process.terminate()
            self.assertEqual(process.wait(rig.SECONDS), 0)

    def test_invalid_options_are_named(self) -> None:
        for argument in ('--port=0', '--port=70000', '--port=x', 'word'):
            done = subprocess.run([PROGRAM, argument], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2)
            self.assertIn(argument, done.stderr)
        script = 'LISTEN_FDS=2 LISTEN_PID=$$ exec "$0" 3<&0 4<&0'
        done = subprocess.run(['/bin/sh', '-c', script, PROGRAM],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 1)
        self.assertIn(os.strerror(errno.E2BIG), done.stderr)
        done = subprocess.run([PROGRAM], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn('--port', done.stderr)


if __name__ == '__main__':
    if not shutil.which('promtool'):
        print('skipped: no promtool (the package prometheus)')
        sys.exit(77)
    rig.main()
