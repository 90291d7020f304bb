"""PyTorch's files of weights without PyTorch, and without executing what is in them.

A .pt file is a zip: ``data.pkl`` is a pickle, a program that makes objects, and ``data/0`` and so on are
numbers. `Reader` runs the few instructions that a list of tensors needs; a call is made only to what
`CALLS` names, all of them functions of this file. Source: Python's own pickletools has the list of
instructions; torch/serialization.py what a file consists of.
"""

from __future__ import annotations

import math
import pickletools
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from crenel.errors import SerializationError
from crenel.nn.importers.names import printable

Array = NDArray[np.generic]

MOST_PROGRAM = 1 << 26  # bytes of data.pkl
MOST_ENTRIES = 1 << 18
STORAGES = {
    "DoubleStorage": "f8", "FloatStorage": "f4", "HalfStorage": "f2", "BFloat16Storage": "u2",
    "LongStorage": "i8", "IntStorage": "i4", "ShortStorage": "i2", "CharStorage": "i1", "ByteStorage": "u1",
    "BoolStorage": "?",
}  # fmt: skip


def bfloat16(bits: Array) -> NDArray[np.float32]:
    """The upper halves of float32."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def state_dict(archive: zipfile.ZipFile, name: str) -> dict[str, Array]:
    """Tensors by name; those of nested lists with the names before them, ``"state_dict.fc.weight"``.

    Raises SerializationError for damaged files and for everything that is no list of tensors.
    """
    root = next(n for n in archive.namelist() if n.endswith("/data.pkl")).removesuffix("data.pkl")
    entry = archive.getinfo(f"{root}data.pkl")
    if entry.file_size > MOST_PROGRAM:
        raise SerializationError(
            f"{name}: a list of {entry.file_size} bytes, expected at most {MOST_PROGRAM}"
        )
    order = archive.read(f"{root}byteorder") if f"{root}byteorder" in archive.namelist() else b"little"
    reader = Reader(name, archive, root, ">" if order == b"big" else "<")
    found: dict[str, Array] = {}
    waiting: list[tuple[str, object]] = [("", reader.run(archive.read(entry)))]
    visited = 0
    while waiting:
        place, value = waiting.pop()
        visited += 1
        if visited > MOST_ENTRIES:  # lists may hold each other
            raise SerializationError(f"{name}: more than {MOST_ENTRIES} entries")
        if isinstance(value, np.ndarray):
            found[place] = value
        elif isinstance(value, dict):
            inner = [(f"{place}.{key}" if place else str(key), each) for key, each in value.items()]
            waiting += reversed(inner)
    if not found:
        raise SerializationError(f"{name}: no tensors in it")
    return found


@dataclass(frozen=True)
class Global:
    """A name that a pickle asks for: never looked up."""

    name: str


class Mark:
    """Where a list on the stack begins."""


@dataclass
class Reader:
    """The machine of a pickle, of which only what lists of tensors need is there."""

    name: str
    archive: zipfile.ZipFile
    root: str
    order: str
    stack: list[Any] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)
    storages: dict[str, Array] = field(default_factory=dict)

    def run(self, program: bytes) -> object:
        """What the program makes. Raises SerializationError for instructions and names that are not known."""
        try:
            for opcode, argument, _ in pickletools.genops(program):
                if opcode.name == "STOP":
                    return self.stack.pop()
                self._step(opcode.name, argument)
        except (IndexError, KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
            raise SerializationError(f"{self.name}: a damaged list of tensors: {printable(error)}") from None
        self._fail("a list of tensors that does not end")

    def _fail(self, reason: str) -> NoReturn:
        raise SerializationError(f"{self.name}: {reason}", {"file": self.name})

    def _step(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in VALUES:
            stack.append(VALUES[name](argument))
        elif name in IGNORED:
            pass
        elif name in ("BINPUT", "LONG_BINPUT"):
            self.memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self.memo[argument])
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            count = int(name[-1])
            stack[-count:] = [tuple(stack[-count:])]
        elif name == "TUPLE":
            stack.append(tuple(self._marked()))
        elif name in ("SETITEM", "SETITEMS"):
            items = self._marked() if name == "SETITEMS" else [stack.pop(-2), stack.pop()]
            keys = [key if isinstance(key, (str, int)) else self._of(key, str) for key in items[::2]]
            self._of(stack[-1], dict).update(zip(keys, items[1::2], strict=True))
        elif name in ("APPEND", "APPENDS"):
            more = self._marked() if name == "APPENDS" else [stack.pop()]
            self._of(stack[-1], list).extend(more)
        elif name == "GLOBAL":
            stack.append(Global(argument.replace(" ", ".")))
        elif name == "STACK_GLOBAL":
            attribute, module = stack.pop(), stack.pop()
            stack.append(Global(f"{module}.{attribute}"))
        elif name == "BINPERSID":
            stack.append(self._storage(*self._of(stack.pop(), tuple)))
        elif name == "REDUCE":
            arguments, called = self._of(stack.pop(), tuple), stack.pop()
            stack.append(self._call(called, arguments))
        elif name == "BUILD":  # attributes of an OrderedDict: versions of modules, which no weight needs
            stack.pop()
            self._of(stack[-1], dict)
        else:
            self._fail(f"instruction {name}, which no list of tensors has")

    def _of(self, value: Any, kind: type) -> Any:
        if not isinstance(value, kind):
            self._fail(f"{type(value).__name__} where a {kind.__name__} is expected")
        return value

    def _marked(self) -> list[Any]:
        at = max(k for k, value in enumerate(self.stack) if isinstance(value, Mark))
        found = self.stack[at + 1 :]
        del self.stack[at:]
        return found

    def _call(self, called: Any, arguments: tuple[Any, ...]) -> object:
        if not isinstance(called, Global) or called.name not in CALLS:
            what = called.name if isinstance(called, Global) else type(called).__name__
            self._fail(f"calls {printable(what)}, which no list of tensors does: nothing was executed")
        return CALLS[called.name](self, *arguments)

    def _storage(self, tag: object, kind: object, key: object, device: object, count: object) -> Array:
        """The numbers of one entry, as one axis; the same array where it is asked for again."""
        type_name = kind.name if isinstance(kind, Global) else ""
        numbers = STORAGES.get(type_name.removeprefix("torch."))
        if tag != "storage" or numbers is None or not isinstance(key, str) or not isinstance(count, int):
            self._fail(f"a storage of {printable(type_name) or type(kind).__name__}")
        if key not in self.storages:
            entry = self.archive.getinfo(f"{self.root}data/{key}")
            kind_of = np.dtype(self.order + numbers)
            if entry.file_size != count * kind_of.itemsize:
                self._fail(f"storage {printable(key)} of {count} numbers in {entry.file_size} bytes")
            found: Array = np.frombuffer(self.archive.read(entry), kind_of)
            self.storages[key] = bfloat16(found) if numbers == "u2" else found
        return self.storages[key]


def _tensor(
    reader: Reader,
    storage: object,
    offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    *more: object,
) -> Array:
    """A view of a storage, torch._utils._rebuild_tensor_v2."""
    axes = (*size, *stride, offset)
    whole = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in axes)
    if not isinstance(storage, np.ndarray) or not whole or len(size) != len(stride) or len(size) > 16:
        reader._fail("a tensor whose shape is none")
    count = math.prod(size)
    reach = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1
    if count and (reach > storage.size or count > storage.size):
        reader._fail(f"a tensor of shape {list(size)} in {storage.size} numbers")
    if not count:
        return np.zeros(size, storage.dtype) if max(size) <= storage.size else np.zeros(0, storage.dtype)
    steps = tuple(step * storage.itemsize for step in stride)
    return np.lib.stride_tricks.as_strided(storage[offset:], size, steps, writeable=False)


def _parameter(reader: Reader, tensor: object, *more: object) -> object:
    return tensor


def _dictionary(reader: Reader, *items: object) -> dict[object, object]:
    if items:
        reader._fail("a dictionary made with arguments")
    return {}


CALLS: dict[str, Callable[..., object]] = {
    "collections.OrderedDict": _dictionary,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_parameter": _parameter,
}
VALUES: dict[str, Callable[[Any], object]] = {
    "MARK": lambda _: Mark(),
    "NONE": lambda _: None,
    "NEWTRUE": lambda _: True,
    "NEWFALSE": lambda _: False,
    "EMPTY_DICT": lambda _: {},
    "EMPTY_LIST": lambda _: [],
    "EMPTY_TUPLE": lambda _: (),
    **{
        name: lambda argument: argument
        for name in (
            "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE",
            "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES",
        )
    },
}  # fmt: skip
IGNORED = frozenset({"PROTO", "FRAME"})
