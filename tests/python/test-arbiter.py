#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Requests, leases and refusals of the package, with gpuarbd and a simulated Radeon VII."""

import copy
import errno
import gc
import importlib.util
import inspect
import math
import os
import pickle
import signal
import sys
import threading
import time
import unittest
import unittest.mock
import warnings
from typing import Any, Callable, List

import rig

import gpuarb
from gpuarb import hip


class Reserve(rig.MachineTest):
    def test_a_lease_lives_as_long_as_its_with_statement(self) -> None:
        with gpuarb.Arbiter() as arbiter:
            with arbiter.reserve(cus='25%', queues=4, class_='guaranteed', wait=60) as lease:
                self.assertEqual((lease.state, lease.cus, lease.effective_cus),
                                 ('granted', 15, 15))
                self.assertEqual(lease.partition.queues, 4)
                self.assertEqual([info.id for info in arbiter.snapshot().leases], [lease.id])
            self.assertEqual(arbiter.snapshot().leases, ())
            with self.assertRaisesRegex(gpuarb.InvalidState, f'lease {lease.id} is closed'):
                _ = lease.state

    def test_a_closed_lease_is_named_when_the_connection_is_closed_too(self) -> None:
        with gpuarb.reserve(cus=15) as lease:
            pass
        with self.assertRaisesRegex(gpuarb.InvalidState, f'lease {lease.id} is closed'):
            _ = lease.cus

    def test_a_closed_connection_does_nothing_while_a_lease_of_it_is_open(self) -> None:
        arbiter = gpuarb.Arbiter()
        with arbiter.reserve(cus=15) as lease:
            arbiter.close()
            calls: List[Callable[[], Any]] = [
                arbiter.snapshot, arbiter.counters, arbiter.reload, arbiter.observe_clients,
                lambda: arbiter.start(1), lambda: arbiter.set_timeout(1),
                lambda: arbiter.set_interactive(True), lambda: arbiter.plan(cus=1),
                lambda: arbiter.reserve(cus=1), lambda: arbiter.reserve_start(cus=1),
                lambda: arbiter.release(lease.id)]
            for call in calls:
                with self.subTest(call), self.assertRaisesRegex(
                        gpuarb.InvalidState, 'the connection to gpuarbd is closed'):
                    call()
            arbiter.close()
            lease.resize(gpuarb.Want(cus=30))
            self.assertEqual((lease.state, lease.cus), ('granted', 30))

    def test_a_copy_that_would_be_closed_again_cannot_be_made(self) -> None:
        with gpuarb.Arbiter() as arbiter, arbiter.reserve(cus=15) as lease:
            copies: List[Callable[[Any], Any]] = [copy.copy, copy.deepcopy, pickle.dumps]
            for make in copies:
                for value in arbiter, lease:
                    with self.subTest(make), self.assertRaisesRegex(TypeError, 'copied'):
                        make(value)
            self.assertEqual(lease.state, 'granted')

    def test_a_lease_outlives_the_connection(self) -> None:
        with gpuarb.reserve(cus=15) as lease:
            self.assertEqual(lease.environment({})['GPUARB_LEASE'], str(lease.id))

    def test_the_environment_sets_and_unsets_variables(self) -> None:
        with gpuarb.reserve(cus=15, queues=4) as lease:
            environment = lease.environment({'HIP_VISIBLE_DEVICES': '1', 'HOME': '/home'})
            self.assertEqual(environment['HSA_CU_MASK'], '0:0x' + self.digits(lease))
            self.assertEqual(environment['GPU_MAX_HW_QUEUES'], '3')
            self.assertEqual(environment['HOME'], '/home')
            self.assertNotIn('HIP_VISIBLE_DEVICES', environment)
            self.assertIsNone(lease.variables()['HIP_VISIBLE_DEVICES'])

    @staticmethod
    def digits(lease: gpuarb.Lease) -> str:
        mask = sum(word << 32 * i for i, word in enumerate(lease.partition.cu_mask))
        return f'{mask:x}'

    def test_a_mask_that_is_set_already_is_a_conflict(self) -> None:
        with gpuarb.reserve(cus=15) as lease, rig.variables(HSA_CU_MASK='0:0x1'):
            with self.assertRaises(gpuarb.MaskConflict):
                lease.environment()

    def test_a_refusal_has_numbers(self) -> None:
        with gpuarb.Arbiter() as arbiter, arbiter.reserve(cus=30) as lease:
            with self.assertRaises(gpuarb.NoCapacity) as caught:
                arbiter.reserve(cus=60)
            refusal, = caught.exception.refusals
            self.assertEqual((refusal.gpu, refusal.reason, refusal.asked, refusal.free),
                             ('0000:03:00.0', 'cus', 60, 30))
            self.assertEqual((refusal.leases, refusal.fits, refusal.total),
                             ((lease.id,), (30,), 60))
            self.assertTrue(refusal.retry)
            self.assertEqual(caught.exception.errno, errno.EBUSY)
            self.assertIsInstance(caught.exception, OSError)
            with self.assertRaises(gpuarb.NeverFits):
                arbiter.reserve(cus=100)

    def test_an_error_can_be_pickled(self) -> None:
        with self.assertRaises(gpuarb.NeverFits) as caught:
            gpuarb.reserve(cus=100)
        copy = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((type(copy), copy.refusals, str(copy)),
                         (gpuarb.NeverFits, caught.exception.refusals, str(caught.exception)))

    def test_invalid_arguments_name_the_argument(self) -> None:
        arguments: Any
        for arguments, word in (({'cus': '0%'}, 'cus'), ({'cus': '30 %'}, 'cus'),
                                ({'cus': -1}, 'cus'), ({'cus': 2**32}, 'cus'),
                                ({'cus': 1, 'queues': 2.5}, 'queues'),
                                ({'cus': 1, 'name': 'a\0b'}, 'NUL'),
                                ({'cus': 1, 'wait': -1}, '-1'),
                                ({'cus': 1, 'wait': math.nan}, 'nan'),
                                ({'cus': 1, 'duration': 0.5}, 'duration=0.5: .* from 1'),
                                ({'cus': 1, 'duration': 1e-9}, 'duration=1e-09: .* from 1'),
                                ({'cus': 1, 'duration': math.inf}, 'duration=inf: .* 0 '),
                                ({'cus': 1, 'duration': '5'}, "duration='5'"),
                                ({'cus': 1, 'shape': 'circle'}, 'circle'),
                                ({'cus': '25%', 'cus_min': 2.5}, 'cus_min'),
                                ({'cus': None}, 'cus'),
                                ({'cus': 1, 'name': 5}, 'name'),
                                ({'cus': 1, 'name': '\ud800'}, 'name'),
                                ({'cus': 1, 'gpu': 'a\0b'}, 'gpu'),
                                ({'cus': 1, 'exact': 'no'}, "exact='no'"),
                                ({'cus': 1, 'adaptable': 'no'}, "adaptable='no'"),
                                ({'cus': 1, 'wait': '1'}, 'wait'),
                                ({'cus': 1, 'priority': 16}, 'priority'),
                                ({'cus': 1, 'priority': 2**32 - 1}, 'priority'),
                                ({'cus': 1, 'process_fd': 2**32 + 5}, 'process_fd'),
                                ({'cus': 1, 'process_fd': '5'}, 'process_fd')):
            with self.subTest(arguments), self.assertRaisesRegex(gpuarb.InvalidRequest, word):
                gpuarb.reserve(**arguments)
        with self.assertRaisesRegex(ValueError, 'queues'):
            gpuarb.request(gpuarb.Want(cus=1), queues=3)
        gpus: Any
        for gpus in '0000:99:00.0', 1.5:
            with self.subTest(gpus), self.assertRaisesRegex(gpuarb.NoSuchGpu, str(gpus)):
                gpuarb.reserve(cus=1, gpu=gpus)

    def test_a_number_is_not_taken_modulo_the_size_of_its_type(self) -> None:
        number: Any
        with gpuarb.Arbiter() as arbiter, arbiter.reserve(cus=15) as lease:
            calls: List[Callable[..., None]] = [arbiter.release, arbiter.activate,
                                                arbiter.deactivate, arbiter.resize]
            for number in 2**64 + lease.id, -1, str(lease.id), None:
                for call in calls:
                    with self.subTest((call, number)), \
                            self.assertRaisesRegex(gpuarb.InvalidRequest, 'lease='):
                        call(number)
            number = 'x'
            for words in [2**32 + 1], [-1], [number]:
                with self.subTest(words), self.assertRaisesRegex(gpuarb.InvalidRequest, 'mask='):
                    lease.mask_queue(0, mask=words)
            with self.assertRaisesRegex(gpuarb.InvalidRequest, 'not a gpuarb.Want'):
                lease.resize(number)
            self.assertEqual(lease.state, 'granted')

    def test_a_lease_that_is_not_closed_warns_and_ends(self) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            gpuarb.reserve(cus=15)
            gc.collect()
        self.assertEqual([w.category for w in caught], [ResourceWarning])
        with gpuarb.Arbiter() as arbiter:
            self.assertEqual(arbiter.snapshot().leases, ())

    def test_a_handler_of_a_signal_can_end_the_wait(self) -> None:
        class Stop(Exception):
            pass

        def handler(*_: object) -> None:
            raise Stop

        before = signal.signal(signal.SIGUSR1, handler)
        with gpuarb.Arbiter() as arbiter, arbiter.reserve(cus=60):
            sender = threading.Thread(target=self.signal_when_waiting)
            sender.start()
            with self.assertRaises(Stop):
                arbiter.reserve(cus=60, wait=math.inf)
            sender.join()
            self.assertEqual([info.state for info in arbiter.snapshot().leases], ['granted'])
        signal.signal(signal.SIGUSR1, before)

    def test_a_handler_that_raises_between_the_grant_and_the_result_leaves_no_lease(self) -> None:
        with gpuarb.Arbiter() as arbiter:
            with unittest.mock.patch('gpuarb.arbiter.Lease', side_effect=KeyboardInterrupt), \
                    self.assertRaises(KeyboardInterrupt):
                arbiter.reserve(cus=60)
            self.assertEqual(arbiter.snapshot().leases, ())

    @staticmethod
    def signal_when_waiting() -> None:
        with gpuarb.Arbiter() as arbiter:
            while not any(info.state == 'waiting' for info in arbiter.snapshot().leases):
                pass
        os.kill(os.getpid(), signal.SIGUSR1)

    def test_a_wait_goes_on_after_a_handler_that_returns_and_then_times_out(self) -> None:
        seen: List[int] = []
        before = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
        with gpuarb.Arbiter() as arbiter, arbiter.reserve(cus=60):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            start = time.monotonic()
            with self.assertRaises(gpuarb.TimedOut):
                arbiter.reserve(cus=60, wait=0.2)
            self.assertGreaterEqual(time.monotonic() - start, 0.2)
        self.assertEqual(seen, [1])
        signal.signal(signal.SIGALRM, before)

    def test_a_thread_that_waits_does_not_stop_others_that_share_the_arbiter(self) -> None:
        with gpuarb.Arbiter() as arbiter:
            first = arbiter.reserve(cus=60)
            granted: List[gpuarb.Lease] = []
            waiter = threading.Thread(
                target=lambda: granted.append(arbiter.reserve(cus=60, wait=math.inf)))
            waiter.start()
            while not any(info.state == 'waiting' for info in arbiter.snapshot().leases):
                pass
            first.close()
            waiter.join(rig.SECONDS)
            self.assertEqual([lease.cus for lease in granted], [60])
            granted[0].close()

    def test_another_thread_closes_a_lease_that_a_thread_waits_for(self) -> None:
        polls = threading.Event()
        raised: List[Exception] = []

        def wait(lease: gpuarb.Lease) -> None:
            try:
                lease.wait()
            except gpuarb.InvalidState as error:
                raised.append(error)

        def poll(*arguments: Any) -> bool:
            polls.set()
            return found(*arguments)

        found = gpuarb.lease._poll
        with gpuarb.Arbiter() as arbiter, arbiter.reserve(cus=60) as first, \
                unittest.mock.patch('gpuarb.lease._poll', poll):
            second = arbiter.reserve_start(cus=60, wait=math.inf)
            waiter = threading.Thread(target=wait, args=(second,), daemon=True)
            waiter.start()
            self.assertTrue(polls.wait(rig.SECONDS))
            self.assertEqual(len(arbiter.snapshot().leases), 2)
            second.close()
            waiter.join(rig.SECONDS)
            self.assertEqual([str(error) for error in raised], [f'lease {second.id} is closed'])
            self.assertEqual([info.id for info in arbiter.snapshot().leases], [first.id])

    def test_a_forked_child_closes_while_another_thread_of_its_parent_calls(self) -> None:
        with gpuarb.Arbiter() as arbiter, arbiter.reserve(cus=15) as lease:
            held, over = threading.Event(), threading.Event()

            def hold() -> None:
                with lease._handle.lock:
                    held.set()
                    over.wait()

            caller = threading.Thread(target=hold)
            caller.start()
            held.wait()
            child = os.fork()
            if child == 0:
                signal.alarm(int(rig.SECONDS))
                try:
                    with self.assertRaises(gpuarb.InvalidState):
                        arbiter.snapshot()
                    lease.close()
                    arbiter.close()
                    os._exit(0)
                finally:
                    os._exit(1)
            over.set()
            caller.join()
            self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_a_forked_child_cannot_use_the_lease_of_its_parent(self) -> None:
        with gpuarb.Arbiter() as arbiter, arbiter.reserve(cus=15) as lease:
            child = os.fork()
            if child == 0:
                try:
                    arbiter.snapshot()
                except gpuarb.InvalidState:
                    self.assertIn(f'Lease {lease.id}: of another process', repr(lease))
                    lease.close()
                    with gpuarb.reserve(cus=15):
                        os._exit(0)
                finally:
                    os._exit(1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual([info.id for info in arbiter.snapshot().leases], [lease.id])

    def test_a_child_that_was_forked_after_the_import_reserves_for_itself(self) -> None:
        child = os.fork()
        if child == 0:
            try:
                with gpuarb.reserve(cus=15) as lease:
                    os._exit(0 if lease.cus == 15 else 1)
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_two_copies_of_the_package_do_not_disturb_each_other(self) -> None:
        spec = importlib.util.spec_from_file_location('vendored_gpuarb', gpuarb.__file__)
        assert spec and spec.loader
        other = importlib.util.module_from_spec(spec)
        with unittest.mock.patch.dict(sys.modules, {'vendored_gpuarb': other}):
            spec.loader.exec_module(other)
            self.assertIsNot(other.Lease, gpuarb.Lease)
            with gpuarb.reserve(cus=15) as first:
                with other.reserve(cus=30) as second:
                    self.assertNotEqual(first.id, second.id)
                    with self.assertRaises(other.NoCapacity):
                        other.reserve(cus=30)
                    with self.assertRaises(gpuarb.NoCapacity):
                        gpuarb.reserve(cus=30)
                self.assertEqual([info.id for info in gpuarb.snapshot().leases
                                  if info.state == 'granted'], [first.id])

    def test_without_hip_a_stream_is_not_supported_and_the_lease_stays(self) -> None:
        with unittest.mock.patch.object(hip, '_NAMES', ('libamdhip64.so.none',)), \
                gpuarb.reserve(cus=15) as lease:
            with self.assertRaises(gpuarb.NotSupported) as caught:
                lease.stream()
            self.assertIn('libamdhip64.so.none', str(caught.exception))
            self.assertEqual(lease.state, 'granted')

    def test_help_shows_the_arguments(self) -> None:
        functions: List[Callable[..., Any]] = [gpuarb.reserve, gpuarb.Arbiter.reserve]
        for function in functions:
            shown = inspect.signature(function)
            self.assertIn('cus', shown.parameters)
            self.assertEqual(shown.return_annotation, gpuarb.Lease)


class Absent(unittest.TestCase):
    def test_no_bus_is_an_absent_daemon(self) -> None:
        with rig.variables(GPUARB_BUS_ADDRESS='unix:path=/nonexistent'):
            with self.assertRaises(gpuarb.DaemonAbsent) as caught:
                gpuarb.Arbiter()
        self.assertIsInstance(caught.exception, ConnectionRefusedError)

    def test_a_daemon_that_stops_ends_leases_and_may_come_back(self) -> None:
        machine = rig.Machine()
        with rig.variables(GPUARB_BUS_ADDRESS=machine.address), gpuarb.Arbiter() as arbiter:
            with arbiter.reserve(cus=15) as lease:
                machine.stop()
                self.assertEqual([status.state for status in lease.changes()][-1], 'ending')
                with self.assertRaises(gpuarb.DaemonAbsent):
                    arbiter.reserve(cus=15)
            machine.start()
            with arbiter.reserve(cus=15) as lease:
                self.assertEqual(lease.cus, 15)
        machine.close()


if __name__ == '__main__':
    rig.main()
