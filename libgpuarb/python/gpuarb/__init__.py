# SPDX-License-Identifier: LGPL-2.1-or-later
"""Leases of parts of AMD GPUs, which gpuarbd grants.

    import gpuarb

    with gpuarb.reserve(cus='25%', queues=4, wait=60) as lease:
        subprocess.run(['./serve'], env=lease.environment())
"""

from .arbiter import Arbiter, plan, reserve, snapshot
from .counters import Counters, Duration, TenantCounters
from .errors import (ConnectionLost, DaemonAbsent, Error, HipError, InvalidRequest, InvalidState,
                     MaskConflict, NeverFits, NoCapacity, NoSuchGpu, NoSuchLease, NoSuchTenant,
                     NotPermitted, NotSaved, NotSupported, OutOfRange, Process, ProtocolError,
                     QuotaExceeded, Refusal, RuntimeStarted, Shutdown, TimedOut, TokenConflict,
                     TooManyLeases)
from .lease import Lease, Status
from .partition import Partition
from .plan import Plan, Shrink
from .request import Request, Want, request
from .run import leased, popen, run
from .slots import QueueSlot, Slots
from .snapshot import (Calibration, Client, Cover, Drift, Gpu, Intruder, LeaseInfo, Pauses,
                       Slowdown, Snapshot)
from .watch import Change, Watch, watch_async

__all__ = [
    'Arbiter', 'Calibration', 'Change', 'Client', 'ConnectionLost', 'Counters', 'Cover',
    'DaemonAbsent', 'Drift', 'Duration', 'Error', 'Gpu', 'HipError', 'Intruder', 'InvalidRequest',
    'InvalidState', 'Lease', 'LeaseInfo', 'MaskConflict', 'NeverFits', 'NoCapacity', 'NoSuchGpu',
    'NoSuchLease', 'NoSuchTenant', 'NotPermitted', 'NotSaved', 'NotSupported', 'OutOfRange',
    'Partition', 'Pauses', 'Plan', 'Process', 'ProtocolError', 'QueueSlot', 'QuotaExceeded',
    'Refusal', 'Request', 'RuntimeStarted', 'Shrink', 'Shutdown', 'Slots', 'Slowdown', 'Snapshot',
    'Status', 'TenantCounters', 'TimedOut', 'TokenConflict', 'TooManyLeases', 'Want', 'Watch',
    'leased', 'plan', 'popen', 'request', 'reserve', 'run', 'snapshot', 'watch_async']
