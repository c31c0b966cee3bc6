#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reserves a lease without libgpuarb, and follows it: prints one JSON object for the reply and for
each record. gpuarb-record(7) describes the records. Needs python3-dbus.

    follow-lease.py CUS
"""

import json
import os
import socket
import struct
import sys

import dbus
import dbus.bus

NAME = 'org.gpuarb.Arbiter1'
STATES = ('waiting', 'granted', 'inactive', 'activating', 'revoking', 'ending')
CAUSES = ('ended', 'timed-out', 'never-fits', 'not-permitted', 'no-such-gpu', 'shutdown')
VERSION = 1
PAUSED = 1

HEADER = struct.Struct('=4I3Q2I128s')
PARTITION = struct.Struct('=32s16s96sQ12I32I2I')


def text(field):
    return field.split(b'\0')[0].decode()


def word(words, number):
    """A newer gpuarbd may send a number that this program does not know."""
    return words[number] if number < len(words) else str(number)


def read_partition(data):
    # A shorter partition is of an older gpuarbd: what it does not have is 0.
    fields = PARTITION.unpack(data[:PARTITION.size].ljust(PARTITION.size, b'\0'))
    gpu, tier, gaps, vram, kfd_gpu_id, cus, asked, effective, engines, queues = fields[:10]
    streams, processes, sdma_queues, priority, flags, n_words = fields[10:16]
    mask = sum(bits << (32 * i) for i, bits in enumerate(fields[16:16 + min(n_words, 32)]))
    return {'gpu': text(gpu), 'tier': text(tier), 'gaps': text(gaps).split(), 'vram': vram,
            'kfd_gpu_id': kfd_gpu_id, 'cus': cus, 'cus_asked': asked, 'effective_cus': effective,
            'shader_engines': [i for i in range(32) if engines >> i & 1], 'queues': queues,
            'streams': streams, 'processes': processes, 'sdma_queues': sdma_queues,
            'sdma_xgmi_queues': fields[48], 'priority': priority,
            'paused': bool(flags & PAUSED), 'cu_mask': hex(mask)}


def read_record(data):
    """None: a record of a version that this program does not know."""
    version, header_size, partition_size, n = struct.unpack_from('=4I', data)
    if version != VERSION or len(data) < header_size + n * partition_size:
        return None
    _, _, _, _, lease, generation, deadline, state, cause, reason = HEADER.unpack_from(data)
    starts = (header_size + i * partition_size for i in range(n))
    return {'lease': lease, 'generation': generation, 'state': word(STATES, state),
            'cause': word(CAUSES, cause) if word(STATES, state) == 'ending' else None,
            'reason': text(reason), 'deadline': None if deadline == 2**64 - 1 else deadline,
            'partitions': [read_partition(data[at:at + partition_size]) for at in starts]}


def main():
    address = os.environ.get('GPUARB_BUS_ADDRESS')
    bus = dbus.bus.BusConnection(address) if address else dbus.SystemBus()
    arbiter = dbus.Interface(bus.get_object(NAME, '/org/gpuarb/Arbiter1'), NAME)
    wants = dbus.Array([{'cus': dbus.UInt32(int(sys.argv[1]))}], signature='a{sv}')
    path, holder, state, _ = arbiter.Reserve(wants, dbus.Dictionary({}, signature='sv'))
    print(json.dumps({'path': path, 'state': state}), flush=True)

    lease = dbus.Interface(bus.get_object(NAME, path), NAME + '.Lease')
    records = socket.socket(fileno=holder.take())  # The lease ends when this is closed.
    records.setblocking(True)
    acknowledged = 1
    while data := records.recv(65536):
        record = read_record(data)
        if not record:
            continue
        print(json.dumps(record), flush=True)
        if record['state'] == 'ending':
            return
        # Here the program changes the masks of its queues; then it says that it has.
        if record['generation'] > acknowledged:
            acknowledged = record['generation']
            lease.Acknowledge(dbus.UInt64(acknowledged))


if __name__ == '__main__':
    main()
