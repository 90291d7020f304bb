"""Crenel: computing on encrypted numbers (CKKS), on CPUs and NVIDIA GPUs, bit-identical on both.

>>> from crenel import ckks
>>> params = ckks.Params(log_n=15, scale_bits=40, depth=8)
>>> context = ckks.Context(params, device="auto")
"""

from typing import TYPE_CHECKING

from crenel import _openmp as _openmp  # before what imports the extension  # isort: skip
from crenel import ckks, fhecore, tfhe
from crenel._crenel import (
    Device,
    DeviceInfo,
    MemoryUse,
    Optimisations,
    PoolUse,
    SecretMemory,
    build_info,
    cuda_unavailable_reason,
    device_info,
    devices,
    secret_memory,
    version,
    write_file,
)
from crenel.account import Account, profile
from crenel.errors import (
    AuthenticationError,
    Cancelled,
    CrenelError,
    DeviceError,
    DivergenceError,
    InsecureParametersWarning,
    KeyMissingError,
    KeyModeWarning,
    KeysNeededError,
    LimitError,
    NotFoundError,
    OutOfMemoryError,
    ParameterError,
    SerializationError,
    ServiceError,
    StateError,
    StorageError,
    UnavailableError,
    UnsupportedError,
)
from crenel.progress_bar import progress
from crenel.tuning import tuned

if TYPE_CHECKING:
    from crenel import nn

__version__ = version()


def __getattr__(name: str) -> object:
    if name != "nn":  # imported at its first use, which programs without networks never come to
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module("crenel.nn")


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "Account",
    "AuthenticationError",
    "Cancelled",
    "CrenelError",
    "Device",
    "DeviceError",
    "DeviceInfo",
    "DivergenceError",
    "InsecureParametersWarning",
    "KeyMissingError",
    "KeyModeWarning",
    "KeysNeededError",
    "LimitError",
    "MemoryUse",
    "NotFoundError",
    "Optimisations",
    "OutOfMemoryError",
    "ParameterError",
    "PoolUse",
    "SecretMemory",
    "SerializationError",
    "ServiceError",
    "StateError",
    "StorageError",
    "UnavailableError",
    "UnsupportedError",
    "__version__",
    "build_info",
    "ckks",
    "cuda_unavailable_reason",
    "device_info",
    "devices",
    "fhecore",
    "nn",
    "profile",
    "progress",
    "secret_memory",
    "tfhe",
    "tuned",
    "version",
    "write_file",
]
