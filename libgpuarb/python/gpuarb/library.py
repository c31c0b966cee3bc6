# SPDX-License-Identifier: LGPL-2.1-or-later
"""The functions and structures of libgpuarb.so.0, as gpuarb.h and gpuarb-queues.h declare them. The
package has both headers, and reads them when it is imported."""

import ctypes
import pkgutil
import re
from ctypes import (CFUNCTYPE, POINTER, c_bool, c_char_p, c_double, c_int, c_size_t, c_uint,
                    c_uint32, c_uint64, c_void_p)
from typing import (TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Tuple, Type,
                    TypeVar)

SONAME = 'libgpuarb.so.0'
FOREVER = 2**64 - 1
PRIORITY_DEFAULT = 2**32 - 1
UID_UNKNOWN = 2**32 - 1

T = TypeVar('T')

# The functions of a callback: of gpuarb_watch() and of gpuarb_lease_dispatch().
Changed = CFUNCTYPE(None, c_char_p, c_char_p, c_void_p)
LeaseChanged = CFUNCTYPE(None, c_void_p, c_void_p)

_TYPES: Dict[str, Any] = {
    'bool': c_bool, 'char': ctypes.c_char, 'double': c_double, 'int': c_int, 'size_t': c_size_t,
    'uint32_t': c_uint32, 'uint64_t': c_uint64, 'unsigned': c_uint, 'void': None,
    'gpuarb_changed_t': Changed, 'gpuarb_lease_changed_t': LeaseChanged,
}


def _read(header: str) -> str:
    """The declarations of a header, without comments and directives."""
    data = pkgutil.get_data('gpuarb', header)
    return re.sub(r'/\*.*?\*/|^#.*?$', '', (data or b'').decode(), flags=re.S | re.M)


def _type(name: str, pointers: int) -> Any:
    """The type for a name of C and the number of asterisks after it."""
    kind: Any = _TYPES.get(name)
    if name in ('char', 'void') and pointers:
        kind, pointers = (c_char_p if name == 'char' else c_void_p), pointers - 1
    elif name not in _TYPES:  # a structure whose members only libgpuarb knows
        kind, pointers = c_void_p, pointers - 1
    for _ in range(pointers):
        kind = POINTER(kind)
    return kind


def _declared(declaration: str) -> List[Tuple[str, Any]]:
    """The names in a declaration and their types: two in "uint32_t cus, *cu_mask"."""
    words = re.sub(r'\b(?:const|struct)\b', '', declaration)
    kind, rest = re.findall(r'^\s*(\w+)(.*)', words, re.S)[0]
    return [(re.sub(r'\W', '', part), _type(kind, part.count('*'))) for part in rest.split(',')]


_HEADERS = _read('gpuarb.cdef') + _read('queues.cdef')

# LeaseInfo, a structure of ctypes, is struct gpuarb_lease_info.
for _name, _body in re.findall(r'^struct gpuarb_(\w+) \{(.*?)^\};', _HEADERS, re.S | re.M):
    _members = [member for line in _body.split(';')[:-1] for member in _declared(line)]
    _class = ''.join(map(str.capitalize, _name.split('_')))
    _TYPES[f'gpuarb_{_name}'] = globals()[_class] = type(
        _class, (ctypes.Structure,), {'_fields_': _members})

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
    'gpuarb_visible_gpus': 'for programs that start others, as gpuarbctl run',
    'gpuarb_watch': 'gpuarb_watch_until() without a descriptor',
    'gpuarb_watch_stop': 'for a callback; a Watch is closed',
}

# Name: type of the result, types of the arguments.
PROTOTYPES: Dict[str, Tuple[Any, ...]] = {
    name: (_declared(f'{result} {name}')[0][1],
           *(_declared(argument)[0][1] for argument in arguments.split(',')))
    for result, name, arguments in re.findall(
        r'^(\w[\w *]*?)(gpuarb_\w+)\(([^;()]*)\);', _HEADERS, re.M) if name not in LEFT_OUT}

if TYPE_CHECKING:
    def __getattr__(name: str) -> Any:
        """The structures."""


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


def rows_of(function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
    """The structures that a function returns for 0, 1, … until it returns NULL."""
    number = 0
    while row := function(*arguments, number):
        yield row.contents
        number += 1


def strings_of(array: Any) -> List[bytes]:
    """The strings of an array that ends with NULL."""
    found: List[bytes] = []
    while (value := array[len(found)]) is not None:
        found.append(value)
    return found
