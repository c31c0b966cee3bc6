# SPDX-License-Identifier: LGPL-2.1-or-later
"""The functions and structures of libgpuarb.so.0, as gpuarb.h and gpuarb-queues.h declare them."""

import ctypes
from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char_p, c_double, c_int, c_size_t,
                    c_uint, c_uint32, c_uint64, c_void_p)
from typing import Any, Callable, Dict, List, Optional, Tuple, Type, TypeVar

SONAME = 'libgpuarb.so.0'
FOREVER = 2**64 - 1
PRIORITY_DEFAULT = 2**32 - 1
UID_UNKNOWN = 2**32 - 1

T = TypeVar('T')


class Refusal(Structure):
    _fields_ = [('gpu', c_char_p), ('reason', c_char_p), ('asked', c_uint64), ('free', c_uint64),
                ('hint', c_char_p), ('retry', c_bool), ('end', POINTER(c_uint64)),
                ('n_end', c_size_t), ('end_exact', c_bool)]


class Process(Structure):
    _fields_ = [('pid', c_uint32), ('uid', c_uint32), ('command', c_char_p), ('queues', c_uint32)]


class RefusalFacts(Structure):
    _fields_ = [('size', c_size_t), ('resource', c_char_p), ('total', c_uint64),
                ('reserved', c_uint64), ('key', c_char_p), ('limit', c_uint64), ('held', c_uint64),
                ('tenant', c_char_p), ('uid', c_uint32), ('asked_class', c_char_p),
                ('limit_class', c_char_p), ('fits', POINTER(c_uint64)), ('n_fits', c_size_t),
                ('fits_resource', c_char_p), ('leases', POINTER(c_uint64)), ('n_leases', c_size_t),
                ('lease_count', c_uint32), ('processes', POINTER(Process)),
                ('n_processes', c_size_t), ('process_count', c_uint32), ('behind', c_uint64),
                ('preempt_tenant', c_char_p), ('end_cut', c_bool)]


class Want(Structure):
    _fields_ = [('size', c_size_t), ('gpu', c_char_p), ('cus', c_uint32),
                ('shader_engines', c_uint32), ('cus_min', c_uint32), ('cus_max', c_uint32),
                ('exact', c_bool), ('shape', c_char_p), ('queues', c_uint32), ('streams', c_uint32),
                ('processes', c_uint32), ('sdma_queues', c_uint32), ('vram', c_uint64),
                ('cooperative', c_bool), ('priority', c_uint32), ('isolation', c_char_p),
                ('sdma_xgmi_queues', c_uint32), ('cus_percent', c_uint32),
                ('cus_min_percent', c_uint32), ('cus_max_percent', c_uint32)]


class Options(Structure):
    _fields_ = [('size', c_size_t), ('lease_class', c_char_p), ('name', c_char_p),
                ('tenant', c_char_p), ('token', c_char_p), ('wait_usec', c_uint64),
                ('start_inactive', c_bool), ('adaptable', c_bool), ('process_fd', c_int),
                ('exclusive', c_char_p), ('requeue', c_bool), ('bind_at_once', c_bool),
                ('duration_usec', c_uint64)]


class Partition(Structure):
    _fields_ = [('gpu', c_char_p), ('kfd_gpu_id', c_uint32), ('sdma_xgmi_queues', c_uint32),
                ('cu_mask', POINTER(c_uint32)), ('cu_mask_words', c_size_t), ('cus', c_uint32),
                ('cus_asked', c_uint32), ('effective_cus', c_uint32),
                ('shader_engines', POINTER(c_uint32)), ('n_shader_engines', c_size_t),
                ('queues', c_uint32), ('streams', c_uint32), ('processes', c_uint32),
                ('sdma_queues', c_uint32), ('vram', c_uint64), ('priority', c_uint32),
                ('paused', c_bool), ('exclusive', c_bool), ('tier', c_char_p),
                ('gaps', POINTER(c_char_p)), ('n_gaps', c_size_t),
                ('priorities_seen', POINTER(c_uint32)), ('n_priorities_seen', c_size_t)]


class Shrink(Structure):
    _fields_ = [('lease', c_uint64), ('gpu', c_char_p), ('from_cus', c_uint32),
                ('to_cus', c_uint32)]


class Effects(Structure):
    _fields_ = [('size', c_size_t), ('shrinks', POINTER(Shrink)), ('n_shrinks', c_size_t),
                ('revokes', POINTER(c_uint64)), ('n_revokes', c_size_t), ('within_usec', c_uint64),
                ('pauses', POINTER(c_uint64)), ('moves', POINTER(c_uint64)),
                ('n_pauses', c_size_t), ('n_moves', c_size_t)]


class Gpu(Structure):
    _fields_ = [('name', c_char_p), ('device', c_char_p), ('gfx_target', c_char_p),
                ('kfd_gpu_id', c_uint32), ('xccs', c_uint32), ('shader_engines', c_uint32),
                ('shader_arrays', c_uint32), ('cus', c_uint32), ('cus_free', c_uint32),
                ('cus_per_shader_engine', POINTER(c_uint32)),
                ('cus_per_shader_array', POINTER(c_uint32)), ('wgp_mode', c_bool),
                ('harvest_known', c_bool), ('law', c_char_p), ('queue_slots', c_uint32),
                ('queue_slots_free', c_uint32), ('process_slots', c_uint32),
                ('process_slots_free', c_uint32), ('pipes', c_uint32),
                ('queues_per_pipe', c_uint32), ('sdma_queues', c_uint32),
                ('sdma_xgmi_queues', c_uint32), ('vram_bytes', c_uint64), ('vram_free', c_uint64),
                ('scheduler', c_char_p), ('unmanaged', POINTER(Process)),
                ('n_unmanaged', c_size_t), ('oversubscribed', c_bool), ('draining', c_bool)]


class LeaseInfo(Structure):
    _fields_ = [('id', c_uint64), ('name', c_char_p), ('state', c_char_p),
                ('lease_class', c_char_p), ('tenant', c_char_p), ('owner_uid', c_uint32),
                ('owner_pid', c_uint32), ('owner_unit', c_char_p), ('adaptable', c_bool),
                ('generation', c_uint64), ('tier', c_char_p), ('partitions', POINTER(Partition)),
                ('n_partitions', c_size_t), ('position', c_uint32), ('reason', c_char_p),
                ('deadline', c_uint64), ('disturbances', c_uint64)]


class Client(Structure):
    _fields_ = [('pid', c_uint32), ('uid', c_uint32), ('command', c_char_p), ('lease', c_uint64),
                ('draws', c_bool), ('gfx_share', c_double), ('compute_share', c_double),
                ('dma_share', c_double), ('gfx_nsec', c_uint64), ('compute_nsec', c_uint64),
                ('dma_nsec', c_uint64), ('vram', c_uint64), ('gtt', c_uint64)]


class Pause(Structure):
    _fields_ = [('count', c_uint64), ('usec', c_uint64), ('since', c_uint64)]


class Drift(Structure):
    _fields_ = [('size', c_size_t), ('kind', c_char_p), ('gpu', c_char_p), ('granted', c_uint64),
                ('observed', c_uint64), ('since', c_uint64), ('pid', c_uint32)]


class Intruder(Structure):
    _fields_ = [('size', c_size_t), ('gpu', c_char_p), ('pid', c_uint32), ('uid', c_uint32),
                ('command', c_char_p), ('lease', c_uint64), ('since', c_uint64), ('cus', c_uint32),
                ('draws', c_bool)]


class Cover(Structure):
    _fields_ = [('size', c_size_t), ('pid', c_uint32), ('uid', c_uint32), ('command', c_char_p),
                ('lease', c_uint64), ('queues', c_uint32), ('cus', c_uint32),
                ('outside_cus', c_uint32), ('cu_mask', POINTER(c_uint32)),
                ('outside_mask', POINTER(c_uint32)), ('cu_mask_words', c_size_t),
                ('outside_mask_words', c_size_t)]


class DriverEvents(Structure):
    _fields_ = [('kind', c_char_p), ('count', c_uint64)]


class Slowdown(Structure):
    _fields_ = [('kind', c_char_p), ('neighbours', c_uint32), ('slowdown', c_uint32)]


class Calibration(Structure):
    _fields_ = [('size', c_size_t), ('date', c_char_p), ('problem', c_char_p),
                ('preemption_usec', c_uint32), ('slowdowns', POINTER(Slowdown)),
                ('n_slowdowns', c_size_t)]


class QueueSlot(Structure):
    _fields_ = [('xcc', c_uint32), ('pipe', c_uint32), ('queue', c_uint32), ('active', c_bool),
                ('vmid', c_uint32), ('priority', c_uint32), ('doorbell', c_uint32),
                ('pid', c_uint32), ('lease', c_uint64), ('command', c_char_p)]


class UsageRow(Structure):
    _fields_ = [('tenant', c_char_p), ('uid', c_uint32), ('lease_class', c_char_p),
                ('leases', c_uint64), ('held_usec', c_uint64), ('cu_usec', c_uint64),
                ('queue_usec', c_uint64), ('waits', c_uint64), ('waited_usec', c_uint64),
                ('refusals', c_uint64)]


class LimitValues(Structure):
    _fields_ = [('calls', c_uint32), ('time_percent', c_uint32), ('pending', c_uint32),
                ('unread_bytes', c_uint64), ('leases', c_uint32), ('leases_total', c_uint32),
                ('holders_total', c_uint32), ('unread_known', c_bool)]


class LimitsRow(Structure):
    _fields_ = [('uid', c_uint32), ('administrator', c_bool), ('connections', c_uint32),
                ('calls', c_uint64), ('calls_delayed', c_uint64), ('calls_refused', c_uint64),
                ('time_usec', c_uint64), ('pending', c_uint32), ('pending_bytes', c_uint64),
                ('unread_bytes', c_uint64), ('unread_fds', c_uint32), ('leases', c_uint32),
                ('waiting', c_uint32), ('holders', c_uint32)]


class Refused(Structure):
    _fields_ = [('reason', c_char_p), ('count', c_uint64)]


class CountersRow(Structure):
    _fields_ = [('tenant', c_char_p), ('grants', c_uint64), ('waits', c_uint64),
                ('revocations', c_uint64), ('preemptions', c_uint64), ('moves', c_uint64),
                ('drifts', c_uint64), ('refusals', POINTER(Refused)), ('n_refusals', c_size_t)]


class Duration(Structure):
    _fields_ = [('name', c_char_p), ('bounds_usec', POINTER(c_uint64)), ('n_bounds', c_size_t),
                ('counts', POINTER(c_uint64)), ('n_counts', c_size_t), ('sum_usec', c_uint64)]


# The functions of a callback: of gpuarb_watch() and of gpuarb_lease_dispatch().
Changed = CFUNCTYPE(None, c_char_p, c_char_p, c_void_p)
LeaseChanged = CFUNCTYPE(None, c_void_p, c_void_p)

_Words = POINTER(c_uint32)
_Pointer = POINTER(c_void_p)
_Strings = POINTER(POINTER(c_char_p))
_Size = POINTER(c_size_t)

# Name: type of the result, types of the arguments.
PROTOTYPES: Dict[str, Tuple[Any, ...]] = {
    'gpuarb_activate': (c_int, c_void_p, c_uint64),
    'gpuarb_close': (None, c_void_p),
    'gpuarb_counters_duration': (POINTER(Duration), c_void_p, c_size_t),
    'gpuarb_counters_free': (None, c_void_p),
    'gpuarb_counters_get': (POINTER(CountersRow), c_void_p, c_size_t),
    'gpuarb_counters_since': (c_uint64, c_void_p),
    'gpuarb_deactivate': (c_int, c_void_p, c_uint64),
    'gpuarb_drain': (c_int, c_void_p, c_char_p, c_bool),
    'gpuarb_last_error': (c_char_p, c_void_p),
    'gpuarb_last_error_name': (c_char_p, c_void_p),
    'gpuarb_last_plan': (POINTER(Partition), c_void_p, _Size),
    'gpuarb_last_plan_duration': (c_uint64, c_void_p),
    'gpuarb_last_plan_effects': (POINTER(Effects), c_void_p),
    'gpuarb_last_refusal_facts': (POINTER(RefusalFacts), c_void_p, c_size_t),
    'gpuarb_last_refusals': (POINTER(Refusal), c_void_p, _Size),
    'gpuarb_lease_acknowledge': (c_int, c_void_p),
    'gpuarb_lease_activate': (c_int, c_void_p),
    'gpuarb_lease_agent_error': (c_int, c_void_p),
    'gpuarb_lease_apply': (c_int, c_void_p),
    'gpuarb_lease_bind': (c_int, c_void_p, c_int),
    'gpuarb_lease_cap': (c_int, c_void_p, c_bool),
    'gpuarb_lease_close': (None, c_void_p),
    'gpuarb_lease_deactivate': (c_int, c_void_p),
    'gpuarb_lease_deadline': (c_uint64, c_void_p),
    'gpuarb_lease_alone': (c_bool, c_void_p),
    'gpuarb_lease_duration': (c_uint64, c_void_p),
    'gpuarb_lease_dispatch': (c_int, c_void_p, LeaseChanged, c_void_p),
    'gpuarb_lease_disturbed_cus': (c_uint, c_void_p, c_size_t),
    'gpuarb_lease_environment': (c_int, c_void_p, _Strings),
    'gpuarb_lease_fd': (c_int, c_void_p),
    'gpuarb_lease_generation': (c_uint64, c_void_p),
    'gpuarb_lease_id': (c_uint64, c_void_p),
    'gpuarb_lease_join': (c_int, c_void_p, c_uint64, _Pointer),
    'gpuarb_lease_mask_queue': (c_int, c_void_p, c_size_t, c_uint32, _Words, c_size_t),
    'gpuarb_lease_resets': (c_uint64, c_void_p),
    'gpuarb_lease_resetting': (c_bool, c_void_p),
    'gpuarb_lease_partition': (POINTER(Partition), c_void_p, c_size_t),
    'gpuarb_lease_partitions': (c_size_t, c_void_p),
    'gpuarb_lease_position': (c_int, c_void_p, POINTER(c_uint)),
    'gpuarb_lease_queue_ids': (c_int, c_void_p, c_size_t, _Words, c_size_t),
    'gpuarb_lease_reason': (c_char_p, c_void_p),
    'gpuarb_lease_release': (c_int, c_void_p),
    'gpuarb_lease_resize': (c_int, c_void_p, POINTER(Want), c_size_t),
    'gpuarb_lease_start_agent': (c_int, c_void_p),
    'gpuarb_lease_state': (c_char_p, c_void_p),
    'gpuarb_lease_wait': (c_int, c_void_p, c_uint64),
    'gpuarb_limits_free': (None, c_void_p),
    'gpuarb_limits_get': (POINTER(LimitsRow), c_void_p, c_size_t),
    'gpuarb_limits_values': (POINTER(LimitValues), c_void_p),
    'gpuarb_look': (c_int, c_void_p, _Pointer),
    'gpuarb_observe_clients': (c_int, c_void_p),
    'gpuarb_open': (c_int, _Pointer),
    'gpuarb_plan_as': (c_int, c_void_p, POINTER(Want), c_size_t, POINTER(Options), c_uint32,
                       POINTER(c_uint32), c_size_t, POINTER(c_char_p)),
    'gpuarb_plan': (c_int, c_void_p, POINTER(Want), c_size_t, POINTER(Options), POINTER(c_char_p)),
    'gpuarb_read_counters': (c_int, c_void_p, _Pointer),
    'gpuarb_read_slots': (c_int, c_void_p, c_char_p, _Pointer),
    'gpuarb_read_limits': (c_int, c_void_p, _Pointer),
    'gpuarb_read_usage': (c_int, c_void_p, c_uint64, _Pointer),
    'gpuarb_release': (c_int, c_void_p, c_uint64),
    'gpuarb_reload': (c_int, c_void_p),
    'gpuarb_reserve': (c_int, c_void_p, POINTER(Want), c_size_t, POINTER(Options), _Pointer),
    'gpuarb_reserve_start': (c_int, c_void_p, POINTER(Want), c_size_t, POINTER(Options), _Pointer),
    'gpuarb_resize': (c_int, c_void_p, c_uint64, POINTER(Want), c_size_t),
    'gpuarb_revoke': (c_int, c_void_p, c_uint64, c_uint64, c_char_p),
    'gpuarb_set_interactive': (None, c_void_p, c_bool),
    'gpuarb_slots_free': (None, c_void_p),
    'gpuarb_slots_get': (POINTER(QueueSlot), c_void_p, c_size_t),
    'gpuarb_slots_queues': (c_uint, c_void_p, POINTER(c_uint)),
    'gpuarb_slots_sdma': (POINTER(QueueSlot), c_void_p, c_size_t),
    'gpuarb_slots_usec': (c_uint64, c_void_p),
    'gpuarb_start': (c_int, c_void_p, c_uint64),
    'gpuarb_usage_free': (None, c_void_p),
    'gpuarb_usage_from': (c_uint64, c_void_p),
    'gpuarb_usage_get': (POINTER(UsageRow), c_void_p, c_size_t),
    'gpuarb_view_alone': (c_bool, c_void_p, c_size_t),
    'gpuarb_view_calibration': (POINTER(Calibration), c_void_p, c_size_t),
    'gpuarb_view_capped': (c_bool, c_void_p, c_size_t),
    'gpuarb_view_uncapped': (c_char_p, c_void_p, c_size_t),
    'gpuarb_view_client': (POINTER(Client), c_void_p, c_size_t, c_size_t),
    'gpuarb_view_cover': (POINTER(Cover), c_void_p, c_size_t, c_size_t),
    'gpuarb_view_cus_min': (c_uint32, c_void_p, c_size_t, c_size_t),
    'gpuarb_view_drift': (POINTER(Drift), c_void_p, c_size_t, c_size_t),
    'gpuarb_view_driver_events': (c_size_t, c_void_p, c_size_t, POINTER(POINTER(DriverEvents))),
    'gpuarb_view_evictions': (POINTER(Pause), c_void_p, c_size_t),
    'gpuarb_view_fairness': (c_double, c_void_p, c_size_t),
    'gpuarb_view_floor_excess': (c_char_p, c_void_p, c_size_t),
    'gpuarb_view_free': (None, c_void_p),
    'gpuarb_view_gpus': (c_size_t, c_void_p, POINTER(POINTER(Gpu))),
    'gpuarb_view_graphics': (c_char_p, c_void_p, c_size_t),
    'gpuarb_view_intruder': (POINTER(Intruder), c_void_p, c_size_t, c_size_t),
    'gpuarb_view_law_constant': (c_uint, c_void_p, c_size_t),
    'gpuarb_view_law_source': (c_char_p, c_void_p, c_size_t),
    'gpuarb_view_memory': (c_char_p, c_void_p, c_size_t),
    'gpuarb_view_named_only': (c_bool, c_void_p, c_size_t),
    'gpuarb_view_vram_pressure': (c_bool, c_void_p, c_size_t),
    'gpuarb_view_system_memory': (c_bool, c_void_p, c_size_t),
    'gpuarb_view_barred_for': (c_uint64, c_void_p, c_size_t),
    'gpuarb_view_leases': (c_size_t, c_void_p, POINTER(POINTER(LeaseInfo))),
    'gpuarb_view_masks_observed': (c_uint64, c_void_p, c_size_t),
    'gpuarb_view_moves': (c_uint64, c_void_p, c_size_t),
    'gpuarb_view_pause': (POINTER(Pause), c_void_p, c_size_t),
    'gpuarb_view_pipes_source': (c_char_p, c_void_p, c_size_t),
    'gpuarb_view_queue_budgets': (c_char_p, c_void_p),
    'gpuarb_view_queue_refusals': (c_uint64, c_void_p, c_size_t),
    'gpuarb_view_resets': (c_uint64, c_void_p, c_size_t),
    'gpuarb_view_restart_keys': (c_size_t, c_void_p, _Strings),
    'gpuarb_view_duration': (c_uint64, c_void_p, c_size_t),
    'gpuarb_terminate': (c_int, c_void_p, c_uint64, c_uint64, c_char_p),
    'gpuarb_view_since': (c_uint64, c_void_p, c_size_t),
    'gpuarb_view_tenants': (c_size_t, c_void_p, _Strings),
    'gpuarb_view_unseen': (c_char_p, c_void_p, c_size_t),
    'gpuarb_view_verified': (c_bool, c_void_p, c_size_t),
    'gpuarb_view_version': (c_char_p, c_void_p),
    'gpuarb_view_waits_for': (POINTER(Refusal), c_void_p, c_size_t,
                              POINTER(POINTER(RefusalFacts))),
    'gpuarb_watch_until': (c_int, c_void_p, c_int, c_uint64, Changed, c_void_p),
}

# Functions of libgpuarb that this package does not call, and the reason.
LEFT_OUT: Dict[str, str] = {
    'gpuarb_lease_attach': 'for libraries in C',
    'gpuarb_lease_attached': 'for libraries in C',
    'gpuarb_lease_cu_mask': 'a member of struct gpuarb_partition',
    'gpuarb_lease_cus': 'a member of struct gpuarb_partition',
    'gpuarb_lease_effective_cus': 'a member of struct gpuarb_partition',
    'gpuarb_lease_fail': 'for libraries in C',
    'gpuarb_lease_gpu': 'a member of struct gpuarb_partition',
    'gpuarb_lease_pause_queue': 'libgpuarb, loaded by Python, does not see how queues are created',
    'gpuarb_lease_priority': 'a member of struct gpuarb_partition',
    'gpuarb_lease_processes': 'a member of struct gpuarb_partition',
    'gpuarb_lease_queues': 'a member of struct gpuarb_partition',
    'gpuarb_lease_streams': 'a member of struct gpuarb_partition',
    'gpuarb_set_timeout': 'for programs that serve others while they wait',
    'gpuarb_visible_gpus': 'for programs that start others, as gpuarbctl run',
    'gpuarb_watch': 'gpuarb_watch_until() without a descriptor',
    'gpuarb_watch_stop': 'for a callback; a Watch is closed',
}


class Library:
    """libgpuarb. Its functions are attributes; the lock of the interpreter is free while they run.

    A function that this libgpuarb does not have yet raises NotImplementedError when it is used.
    """

    def __init__(self, soname: str = SONAME) -> None:
        # An object of its own: types that another module sets for the same library do not matter.
        self._library = ctypes.CDLL(soname)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in PROTOTYPES:
            raise AttributeError(name)
        try:
            function = self._library[name]
        except AttributeError:
            raise NotImplementedError(f'{SONAME} has no {name}(): install a newer libgpuarb') \
                from None
        function.restype, *arguments = PROTOTYPES[name]
        function.argtypes = arguments
        setattr(self, name, function)
        return function


def _load() -> Library:
    try:
        return Library()
    except OSError as error:
        raise ImportError(f'{SONAME} cannot be loaded ({error}): install the package libgpuarb0') \
            from None


lib = _load()
free = ctypes.CDLL(None).free
free.argtypes, free.restype = (c_void_p,), None


def text(value: 'bytes | None') -> str:
    """A string of the library; '' for NULL."""
    return value.decode('utf-8', 'surrogateescape') if value else ''


def uid_of(number: int) -> Optional[int]:
    return None if number == UID_UNKNOWN else number


def values_of(kind: Type[Any], raw: Any) -> Dict[str, Any]:
    """The members of a structure that have the names of fields of a dataclass."""
    types = dict(raw._fields_)
    values: Dict[str, Any] = {}
    for name in kind.__annotations__.keys() & types.keys():
        value = getattr(raw, name)
        if f'n_{name}' in types:
            rows = value[:getattr(raw, f'n_{name}')]
            value = tuple(map(text, rows)) if types[name] == POINTER(c_char_p) else tuple(rows)
        elif types[name] == c_char_p:
            value = text(value)
        values[name] = uid_of(value) if name == 'uid' else value
    return values


def copied(kind: Type[T], raw: Any, **values: Any) -> T:
    """A dataclass of what a structure has. values: fields that have another form there."""
    return kind(**{**values_of(kind, raw), **values})


def strings_of(array: Any) -> List[bytes]:
    """The strings of an array that ends with NULL."""
    found: List[bytes] = []
    while (value := array[len(found)]) is not None:
        found.append(value)
    return found
