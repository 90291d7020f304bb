"""Files of weights, read without executing anything: safetensors, NumPy's .npz, PyTorch's .pt and .pth.

>>> weights = nn.weights.load("resnet20.pth")
>>> nn.Linear(weights["fc.weight"], weights["fc.bias"])
"""

from __future__ import annotations

import io
import lzma
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crenel.errors import ParameterError, SerializationError
from crenel.nn.archive import read
from crenel.nn.functions import Reals
from crenel.nn.importers.imported import needs
from crenel.nn.importers.names import printable
from crenel.nn.importers.state_dict import bfloat16, state_dict

LIMIT = 1 << 32  # bytes of a file, and of what is in it
MOST_PACKED = 100  # times that a zip may unpack to; weights shrink by a tenth
SMALL = 1 << 26  # bytes that may be packed as they like
MOST_HEADER = 1000  # characters of an array's, a term of Python; longer ones may be too deep for its parser
DAMAGED = (  # what zipfile raises for archives that are not as they say
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, EOFError, OSError,
    OverflowError, struct.error, ValueError, KeyError,
)  # fmt: skip
SAFETENSORS: Mapping[str, str] = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "I64": "<i8", "I32": "<i4", "I16": "<i2",
    "I8": "|i1", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip


def load(path: str | os.PathLike[str], prefix: str = "") -> dict[str, Reals]:
    """Weights by name, in float64, read-only.

    Parameters
    ----------
    path : of a file in one of the forms, which its first bytes tell
    prefix : only names that begin with it, and without it: ``"module."`` of networks that were trained on
        several devices, ``"state_dict."`` of checkpoints with more than the weights

    Of a file of PyTorch only lists of tensors are understood, by a reader of its own that calls nothing: what
    else there is in a pickle is refused by its name. Raises FileError; SerializationError for files of other
    forms, damaged ones, ones above 4 GiB or a hundred times their size when unpacked; ParameterError where no
    name begins with the prefix; UnsupportedError for safetensors without that package.
    """
    name = printable(Path(path).name)
    if (size := Path(path).stat().st_size if Path(path).is_file() else 0) > LIMIT:
        raise SerializationError(f"{name}: {size} bytes, expected at most {LIMIT}", {"bytes": size})
    data = read(path)
    if data[:4] == b"PK\x03\x04":
        found = _zipped(data, name)
    elif len(data) > 8 and data[8:9] == b"{":
        found = _safetensors(data, name)
    else:
        old = " (PyTorch before 1.6 saved so: load it there and save it again)" if data[:1] == b"\x80" else ""
        raise SerializationError(
            f"{name}: no file of weights in safetensors, .npz or PyTorch's zip form{old}",
            {"bytes": len(data)},
        )
    chosen = {key.removeprefix(prefix): value for key, value in found.items() if key.startswith(prefix)}
    if not chosen:
        raise ParameterError(
            f"{name}: no weights whose names begin with {prefix!r:.60}; there are "
            f"{', '.join(map(printable, list(found)[:8]))}{', ...' * (len(found) > 8)}",
            {"prefix": f"{prefix!r:.60}", "count": len(found)},
        )
    if (total := 8 * sum(value.size for value in chosen.values())) > 2 * LIMIT:
        raise SerializationError(f"{name}: {total} bytes in float64, expected at most {2 * LIMIT}")
    return {key: _frozen(value) for key, value in chosen.items()}


def _frozen(value: NDArray[np.generic]) -> Reals:
    found = np.array(value, dtype=np.float64)
    found.setflags(write=False)
    return found


def _safetensors(data: bytes, name: str) -> dict[str, NDArray[np.generic]]:
    try:
        import safetensors
    except ImportError:
        needs("safetensors", "weights")
    try:
        reader: Any = safetensors  # it has no types
        entries = reader.deserialize(data)
    except Exception as error:  # SafetensorError, whose class is not stable
        raise SerializationError(f"{name}: {printable(error)}") from None
    found = {}
    for key, entry in entries:
        kind = SAFETENSORS.get(entry["dtype"])
        if kind is None:
            raise SerializationError(
                f"{name}: {printable(key)} of type {entry['dtype']}, expected {', '.join(SAFETENSORS)}",
                {"weights": printable(key), "type": str(entry["dtype"])},
            )
        numbers = np.frombuffer(entry["data"], kind)
        numbers = bfloat16(numbers) if entry["dtype"] == "BF16" else numbers
        found[key] = numbers.reshape(entry["shape"])
    return found


def _zipped(data: bytes, name: str) -> dict[str, NDArray[np.generic]]:
    """Of NumPy or of PyTorch."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            size = sum(entry.file_size for entry in entries)
            if size > (most := min(LIMIT, max(SMALL, MOST_PACKED * len(data)))):
                raise SerializationError(
                    f"{name}: {len(data)} bytes that say they unpack to {size}, expected at most {most}",
                    {"bytes": size},
                )
            if any(entry.filename.endswith("/data.pkl") for entry in entries):
                return state_dict(archive, name)
            return {
                entry.filename.removesuffix(".npy"): _npy(
                    archive.read(entry), f"{name}: {printable(entry.filename)}"
                )
                for entry in entries
            }
    except SerializationError:
        raise
    except DAMAGED as error:
        raise SerializationError(f"{name}: {printable(error)}") from None


def _npy(data: bytes, name: str) -> NDArray[np.generic]:
    """One array. Its header is held against the bytes that there are before memory is taken."""
    form: Any = np.lib.format  # whose functions have no types
    stream = io.BytesIO(data)
    try:
        old = form.read_magic(stream) == (1, 0)
        header = form.read_array_header_1_0 if old else form.read_array_header_2_0
        shape, _, kind = header(stream, max_header_size=MOST_HEADER)
        if kind.kind not in "biuf" or kind.itemsize * math.prod(shape) != len(data) - stream.tell():
            raise ValueError(f"shape {shape} of {kind} in {len(data)} bytes, expected real numbers")
        stream.seek(0)
        return np.asarray(form.read_array(stream, allow_pickle=False))
    except (ValueError, TypeError, SyntaxError, EOFError, RecursionError, TokenError) as error:
        raise SerializationError(f"{name}: {printable(error)}", {"weights": name}) from None
