"""Arrays of trained weights from files that hold numbers only."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from crenel.errors import SerializationError, UnsupportedError
from crenel.workloads.files import opened
from crenel.workloads.tables import read_npz


def read(path: Path) -> dict[str, np.ndarray]:
    """Arrays by name, of a file ``.npz`` or ``.safetensors``.

    Raises FileError, SerializationError for what is no such file, UnsupportedError for other names, and where
    safetensors is not installed.
    """
    if path.suffix == ".npz":
        return read_npz(path)
    if path.suffix != ".safetensors":
        raise UnsupportedError(
            f"{path}: weights of a file {path.suffix or 'without an ending'}, expected .npz or .safetensors",
            {"path": str(path)},
        )
    try:
        from safetensors.numpy import load
    except ImportError:
        raise UnsupportedError("files .safetensors need safetensors: pip install safetensors") from None
    with opened(path) as file:
        data = file.read()
    try:
        return dict(load(data))
    except Exception as error:  # its own class is private, and NumPy raises others
        raise SerializationError(f"{path}: no safetensors: {error}", {"path": str(path)}) from None
