"""TFHE: exact computation on encrypted bits, small messages and integers; every operation bootstraps.

The objects, in the order in which they are made:

`Params`
    what is computed with: ``preset("bool128")`` for gates, ``preset("lut4-128")`` for look-up tables and
    integers; each states the probability that a bootstrap fails, and its security
`Context`
    parameters on a device
`Client`
    the holder of the secret keys, ``context.keygen()``: encrypts and decrypts NumPy arrays
`EvaluationKeys`
    what a server gets, ``client.evaluation_keys()``: no secret
`Evaluator`
    the operations, ``context.evaluator(keys)``, on whole arrays: the more elements, the faster each
`Ciphertext`, `Integers`
    encrypted arrays of bits or small messages, and of integers of 2 to 256 bits
`Compressed`
    an encrypted array in few bytes, in host memory, for storage
`BoundCiphertext`, `BoundIntegers`
    the same with operators: ``ev(a)``
`DevicePool`
    the same parameters on several GPUs: its evaluator divides every array among them
"""

import crenel.pickling  # noqa: F401  (makes Params fit for pickle)
from crenel._crenel import TfheEvaluationKeys as EvaluationKeys
from crenel._crenel import TfheParams as Params
from crenel._crenel import tfhe_preset as preset
from crenel._crenel import tfhe_preset_names as preset_names
from crenel.errors import (
    CrenelError,
    DeviceError,
    InsecureParametersWarning,
    KeyMissingError,
    OutOfMemoryError,
    ParameterError,
    SerializationError,
    StateError,
    UnsupportedError,
)
from crenel.tfhe.arrays import Ciphertext, Integers, concatenate
from crenel.tfhe.bound import BoundCiphertext, BoundIntegers
from crenel.tfhe.compressed import Compressed
from crenel.tfhe.context import Client, Context
from crenel.tfhe.evaluator import Evaluator
from crenel.tfhe.pool import DevicePool, PoolEvaluator
from crenel.tfhe.types import IntegerType

__all__ = [
    "BoundCiphertext",
    "BoundIntegers",
    "Ciphertext",
    "Client",
    "Compressed",
    "Context",
    "CrenelError",
    "DeviceError",
    "DevicePool",
    "EvaluationKeys",
    "Evaluator",
    "InsecureParametersWarning",
    "IntegerType",
    "Integers",
    "KeyMissingError",
    "OutOfMemoryError",
    "ParameterError",
    "Params",
    "PoolEvaluator",
    "SerializationError",
    "StateError",
    "UnsupportedError",
    "concatenate",
    "preset",
    "preset_names",
]
