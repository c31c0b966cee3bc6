# SPDX-License-Identifier: LGPL-2.1-or-later
"""Leases of parts of AMD GPUs, which gpuarbd grants.

    import gpuarb

    with gpuarb.reserve(cus='25%', queues=4, wait=60) as lease:
        subprocess.run(['./serve'], env=lease.environment())
"""

from .arbiter import Arbiter, reserve
from .errors import (ConnectionLost, DaemonAbsent, Error, HipError, InvalidRequest, InvalidState,
                     MaskConflict, NeverFits, NoCapacity, NoSuchGpu, NoSuchLease, NoSuchTenant,
                     NotPermitted, NotSaved, NotSupported, OutOfRange, Process, ProtocolError,
                     QuotaExceeded, Refusal, RuntimeStarted, Shutdown, TimedOut, TokenConflict,
                     TooManyLeases)
from .lease import Lease
from .partition import Partition
from .request import Request, Want, request

__all__ = [
    'Arbiter', 'ConnectionLost', 'DaemonAbsent', 'Error', 'HipError', 'InvalidRequest',
    'InvalidState', 'Lease', 'MaskConflict', 'NeverFits', 'NoCapacity', 'NoSuchGpu', 'NoSuchLease',
    'NoSuchTenant', 'NotPermitted', 'NotSaved', 'NotSupported', 'OutOfRange', 'Partition',
    'Process', 'ProtocolError', 'QuotaExceeded', 'Refusal', 'Request', 'RuntimeStarted', 'Shutdown',
    'TimedOut', 'TokenConflict', 'TooManyLeases', 'Want', 'request', 'reserve']
