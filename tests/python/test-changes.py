#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Plans, gangs, changes of leases, watching, and programs inside leases, with gpuarbd and two
simulated GPUs."""

import asyncio
import contextlib
import dataclasses
import math
import os
import signal
import subprocess
import sys
import threading
import unittest.mock
from pathlib import Path
from typing import Any, Callable, List

import rig

import gpuarb

RADEON_VII, V620 = '0000:03:00.0', '0000:04:00.0'


class Plans(rig.MachineTest):
    simulate = 'radeon-vii,v620'

    def test_a_plan_has_the_partitions_and_reserves_nothing(self) -> None:
        plan = gpuarb.plan(cus=30, gpu=0)
        self.assertTrue(plan.check())
        self.assertEqual([(p.gpu, p.cus) for p in plan.partitions], [(RADEON_VII, 30)])
        self.assertEqual(gpuarb.snapshot().leases, ())

    def test_a_refused_plan_has_the_refusals_and_the_error_of_reserve(self) -> None:
        with gpuarb.Arbiter() as arbiter, arbiter.reserve(cus=45, gpu=0) as lease:
            for asked in (gpuarb.request(cus=30, gpu=0), gpuarb.request(cus=1000, gpu=0)):
                plan = arbiter.plan(asked)
                self.assertFalse(plan)
                with self.assertRaises(gpuarb.Error) as planned:
                    plan.check()
                with self.assertRaises(gpuarb.Error) as reserved:
                    arbiter.reserve(asked)
                self.assertIs(type(planned.exception), type(reserved.exception))
                self.assertEqual([(r.reason, r.asked) for r in planned.exception.refusals],
                                 [(r.reason, r.asked) for r in reserved.exception.refusals])
            self.assertEqual(arbiter.plan(cus=30, gpu=0).refusals[0].leases, (lease.id,))
            self.assertEqual(arbiter.plan(cus=30, gpu=0, wait=5).result, 'waiting')

    def test_a_gang_is_granted_on_all_gpus_or_on_none(self) -> None:
        wants = gpuarb.Want(cus='50%', gpu=RADEON_VII), gpuarb.Want(cus='25%', gpu=1, queues=3)
        with gpuarb.Arbiter() as arbiter:
            with arbiter.reserve(*wants, name='gang') as lease:
                self.assertEqual([p.gpu for p in lease.partitions], [RADEON_VII, V620])
                self.assertEqual(lease.partitions[0].cus, 30)
                with self.assertRaises(gpuarb.InvalidState):
                    _ = lease.effective_cus
                with self.assertRaises(gpuarb.NoCapacity):
                    arbiter.reserve(gpuarb.Want(cus=60, gpu=0), gpuarb.Want(cus=8, gpu=1))
                self.assertEqual([i.name for i in arbiter.snapshot().leases], ['gang'])
        mixed: Any
        for mixed in ((wants[0], 7), (gpuarb.request(cus=1), wants[0])):
            with self.assertRaises(ValueError):
                gpuarb.plan(*mixed)

    def test_a_share_is_one_of_each_gpu_that_may_be_chosen(self) -> None:
        for gpu, cus in ((None, 36), ([0, 1], 36), ((0,), 30), ('0', 30)):
            plan = gpuarb.plan(cus='50%', gpu=gpu)
            self.assertEqual([p.cus for p in plan.partitions], [cus])
        with self.assertRaisesRegex(gpuarb.NoSuchGpu, "'7'"):
            gpuarb.plan(cus='50%', gpu=[0, 7])


class Changes(rig.MachineTest):
    def test_a_lease_is_resized_and_acknowledged(self) -> None:
        with gpuarb.reserve(cus=30) as lease:
            lease.resize(gpuarb.Want(cus='25%'))
            self.assertEqual((lease.cus, lease.generation), (15, 2))
            lease.acknowledge()
            self.assertEqual(lease.gpu().cus_free, 45)
            with self.assertRaisesRegex(gpuarb.InvalidRequest, '2 wants.*1 partition'):
                lease.resize(gpuarb.Want(cus='25%'), gpuarb.Want(cus='50%'))

    def test_a_gpu_of_a_lease_that_is_gone_is_no_such_gpu(self) -> None:
        with gpuarb.reserve(cus=15) as lease:
            view = dataclasses.replace(gpuarb.snapshot(), gpus=())
            with unittest.mock.patch('gpuarb.lease.take_snapshot', return_value=view), \
                    self.assertRaisesRegex(gpuarb.NoSuchGpu, RADEON_VII):
                lease.gpu()

    def test_changes_end_with_the_lease(self) -> None:
        with gpuarb.Arbiter() as arbiter, arbiter.reserve(cus=30) as lease:
            for timeout in 0, -0.5:
                self.assertEqual(list(lease.changes(timeout=timeout)), [])
            arbiter.resize(lease.id, gpuarb.Want(cus=15))
            arbiter.release(lease.id)
            seen = list(lease.changes())
            self.assertEqual((seen[0].generation, seen[-1].state), (2, 'ending'))
            with self.assertRaises(gpuarb.NoSuchLease):
                lease.dispatch()

    def test_a_revocation_has_a_deadline_and_a_reason(self) -> None:
        with gpuarb.Arbiter() as arbiter, arbiter.reserve(cus=30) as lease:
            arbiter.revoke(lease.id, grace=60, reason='maintenance')
            status = next(lease.changes())
            self.assertEqual(status.state, 'revoking')
            self.assertIn('maintenance', status.reason)
            self.assertIsNotNone(status.deadline)
            lease.acknowledge()
            self.assertEqual([s.state for s in lease.changes()][-1], 'ending')

    def test_the_example_of_the_manual_outlives_a_revocation(self) -> None:
        page = (rig.SOURCE / 'docs/gpuarb-python.3.scd').read_text()
        example = next(block for block in page.split('```\n') if 'lease.changes()' in block)
        reserve, saved = gpuarb.reserve, []

        def reserve_and_revoke(**wanted: Any) -> gpuarb.Lease:
            lease = reserve(class_='besteffort', **wanted)
            with gpuarb.Arbiter() as arbiter:
                arbiter.revoke(lease.id, grace=60)
            return lease

        with unittest.mock.patch('gpuarb.reserve', reserve_and_revoke):
            exec(example, {'gpuarb': gpuarb, 'save_work': lambda: saved.append(True)})
        self.assertEqual((saved, gpuarb.snapshot().leases), ([True], ()))

    def test_a_realtime_lease_lends_and_reclaims(self) -> None:
        with gpuarb.reserve(cus=15, class_='realtime', start_inactive=True) as lease:
            self.assertEqual(lease.state, 'inactive')
            lease.activate()
            lease.wait(rig.SECONDS)
            self.assertEqual(lease.state, 'granted')
            lease.deactivate()
            self.assertEqual(lease.state, 'inactive')

    def test_a_waiting_lease_has_a_position_and_is_granted(self) -> None:
        with gpuarb.Arbiter() as arbiter, arbiter.reserve(cus=60) as first:
            with arbiter.reserve_start(cus=60, wait=rig.SECONDS) as second:
                self.assertEqual((second.state, second.position(), second.partitions),
                                 ('waiting', 1, ()))
                info = arbiter.snapshot().leases[1]
                assert info.waits_for
                self.assertEqual(info.waits_for.leases, (first.id,))
                with self.assertRaises(gpuarb.TimedOut) as caught:
                    second.wait(0)
                self.assertEqual(caught.exception.name, '')
                first.close()
                second.wait(rig.SECONDS)
                self.assertEqual(second.cus, 60)

    def test_administrators_drain_a_gpu(self) -> None:
        with gpuarb.Arbiter() as arbiter:
            arbiter.drain(0)
            with self.assertRaises(gpuarb.NoCapacity) as caught:
                arbiter.reserve(cus=1)
            self.assertEqual(caught.exception.refusals[0].reason, 'drain')
            arbiter.drain(RADEON_VII, False)
            arbiter.reload()
            arbiter.start(rig.SECONDS)
            with self.assertRaises(gpuarb.NotSupported):
                arbiter.slots(0)

    def test_what_needs_a_gpu_is_refused_for_a_simulated_one(self) -> None:
        with gpuarb.reserve(cus=15, cus_min=15, class_='besteffort', adaptable=True) as lease:
            calls: List[Callable[[], object]] = [lease.apply, lease.start_agent, lease.queue_ids]
            for call in calls:
                with self.subTest(call), self.assertRaises(gpuarb.NotSupported):
                    call()
            with self.assertRaises(gpuarb.InvalidState):
                lease.check_agent()


class Watching(rig.MachineTest):
    def test_a_watch_follows_leases_and_a_restart(self) -> None:
        with gpuarb.Watch() as watch:
            self.assertEqual(next(watch), gpuarb.Change('watching'))
            with gpuarb.reserve(cus=15) as lease:
                pass
            kinds = []
            for change in watch:
                if change.lease != lease.id:
                    continue  # a lease of a test before ends later
                kinds.append(change.kind)
                if change.kind == 'lease-removed':
                    break
            self.assertEqual(kinds[0], 'lease-added')
            self.machine.stop()
            self.machine.start()
            self.assertIn('daemon-back', (change.kind for change in watch))
        self.assertEqual(list(watch), [])

    def test_a_watch_ends_after_its_timeout_and_goes_on(self) -> None:
        with gpuarb.Watch(timeout=0.05) as watch:
            seen: List[str] = []
            while 'watching' not in seen:  # later changes are reported
                seen += [change.kind for change in watch]
            with gpuarb.reserve(cus=15):
                while 'lease-added' not in seen:
                    seen += [change.kind for change in watch]
        self.assertEqual(seen[0], 'watching')

    def test_a_watch_is_closed_by_another_thread(self) -> None:
        watch = gpuarb.Watch()
        next(watch)
        closer = threading.Thread(target=watch.close)
        closer.start()
        self.assertNotIn('watching', [change.kind for change in watch])
        closer.join()

    def test_a_forked_child_leaves_the_watch_of_its_parent_alone(self) -> None:
        with gpuarb.Watch() as watch:
            next(watch)
            child = os.fork()
            if child == 0:
                signal.alarm(int(rig.SECONDS))
                try:
                    watch.close()
                    os._exit(0)
                finally:
                    os._exit(1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            with gpuarb.reserve(cus=15) as lease:
                self.assertIn(gpuarb.Change('lease-added', lease.id), watch)

    def test_asyncio_follows_waits_and_cancels(self) -> None:
        asyncio.run(self.follow())
        self.assertEqual(gpuarb.snapshot().leases, ())
        self.assertEqual([t.name for t in threading.enumerate() if t.name == 'gpuarb-watch'], [])

    async def follow(self) -> None:
        seen: List[str] = []
        with gpuarb.Arbiter() as arbiter:
            async with contextlib.aclosing(gpuarb.watch_async()) as changes:
                self.assertEqual((await anext(changes)).kind, 'watching')
                first = await arbiter.reserve_async(cus=60)
                waiter = asyncio.create_task(arbiter.reserve_async(cus=60, wait=rig.SECONDS))
                cancelled = asyncio.create_task(arbiter.reserve_async(cus=60, wait=rig.SECONDS))
                async for change in changes:
                    seen.append(change.kind)
                    if seen.count('lease-added') == 3:
                        break
            cancelled.cancel()
            first.close()
            with await waiter as second:
                self.assertEqual(second.state, 'granted')
                arbiter.release(second.id)
                states = [status.state async for status in second.changes_async()]
                self.assertEqual(states[-1], 'ending')
            with self.assertRaises(asyncio.CancelledError):
                await cancelled
            with self.assertRaises(gpuarb.NeverFits):
                await arbiter.reserve_async(cus=1000)

    def test_another_task_closes_a_lease_that_a_task_waits_for(self) -> None:
        async def close() -> None:
            with gpuarb.reserve(cus=60), gpuarb.Arbiter() as arbiter:
                lease = arbiter.reserve_start(cus=60, wait=math.inf)
                waiter = asyncio.create_task(lease.granted())
                await asyncio.sleep(0)  # the task runs and waits
                lease.close()
                with self.assertRaises(gpuarb.InvalidState):
                    await asyncio.wait_for(waiter, rig.SECONDS)
        asyncio.run(close())


class Programs(rig.MachineTest):
    PRINT = [sys.executable, '-c', 'import os; print(os.environ["GPUARB_LEASE"])']

    def test_run_is_subprocess_run_inside_a_lease(self) -> None:
        done = gpuarb.run(self.PRINT, gpuarb.request(cus=15), capture_output=True, text=True,
                          check=True)
        self.assertGreater(int(done.stdout), 0)
        with self.assertRaises(subprocess.CalledProcessError):
            gpuarb.run(['false'], gpuarb.request(cus=15), check=True)
        with self.assertRaises(FileNotFoundError):
            gpuarb.run(['/nonexistent'], gpuarb.request(cus=15))
        with self.assertRaises(subprocess.TimeoutExpired):
            gpuarb.run(['sleep', '1000'], gpuarb.request(cus=15), timeout=0.05)
        echoed = gpuarb.run(['cat'], gpuarb.request(cus=15), input=b'text', capture_output=True)
        self.assertEqual(echoed.stdout, b'text')

    def test_a_program_keeps_its_lease(self) -> None:
        with gpuarb.Arbiter() as arbiter, gpuarb.Watch() as watch:
            next(watch)
            with arbiter.reserve(cus=15) as lease:
                child = gpuarb.popen(['cat'], lease, stdin=subprocess.PIPE)
            self.assertEqual([info.id for info in arbiter.snapshot().leases], [lease.id])
            child.communicate(b'')
            self.assertIn(gpuarb.Change('lease-removed', lease.id), watch)

    def test_a_lease_applies_to_this_process_while_no_runtime_runs(self) -> None:
        @gpuarb.leased(gpuarb.request(cus=15), this_process=True)
        def work(lease: gpuarb.Lease, factor: int) -> int:
            self.assertEqual(os.environ['GPUARB_LEASE'], str(lease.id))
            self.assertNotIn('HIP_VISIBLE_DEVICES', os.environ)
            return lease.effective_cus * factor

        @gpuarb.leased(gpuarb.request(cus=15))
        def plain(lease: gpuarb.Lease) -> bool:
            return 'GPUARB_LEASE' in os.environ

        with rig.variables(HIP_VISIBLE_DEVICES='0'):
            self.assertEqual(work(2), 30)
            self.assertEqual(os.environ['HIP_VISIBLE_DEVICES'], '0')
        self.assertNotIn('GPUARB_LEASE', os.environ)
        self.assertFalse(plain())

    def test_importing_starts_nothing_and_is_cheap(self) -> None:
        done = rig.python('-c', 'import sys, threading, gpuarb; print(threading.active_count(), '
                          '"asyncio" in sys.modules, "subprocess" in sys.modules)')
        self.assertEqual(done.stdout, '1 False True\n')
        self.assertTrue(Path(gpuarb.__file__).with_name('py.typed').exists())


if __name__ == '__main__':
    rig.main()
