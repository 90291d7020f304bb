"""CKKS: approximate arithmetic on encrypted real and complex vectors.

The objects, in the order in which they are made:

`Params`
    what is computed with, checked for security: ``Params(log_n=15, scale_bits=40, depth=8)`` or
    ``preset("boot40")``
`Context`
    parameters on a device
`Client`
    the holder of the secret key, ``context.keygen()``: encrypts and decrypts; what others are to
    see comes from ``client.decrypt_to_share``
`ErrorModel`
    the errors of a circuit, ``f(model.input(1.0))``, from what the client knows
`EvaluationKeys`
    what a server gets, ``client.evaluation_keys(rotations=[1, 2])``: no secret
`Evaluator`
    the operations, ``context.evaluator(keys)``: explicit ones, and ``ev(a) * ev(b) + 1`` where
    levels and scales are handled
`Array`
    numbers with a shape, ``ckks.encrypt(client, numbers)`` and then ``ev(array)``: ``@``, ``sum``, ranges and
    broadcasting as NumPy's; ``ckks.keys_for(client, program, array)`` makes the keys that a program needs
`Bootstrapper`
    ``context.bootstrapper(server)``: gives a ciphertext of the last level its levels back
`DevicePool`
    the same parameters on several GPUs: its evaluator spreads ciphertexts over them
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast, overload

import crenel.pickling  # noqa: F401  (makes Params fit for pickle)
from crenel import _crenel
from crenel._crenel import (
    BlockTransform,
    BootstrapLevels,
    BootstrapOptions,
    Bootstrapper,
    BootstrapReport,
    ChebyshevFit,
    Ciphertext,
    Client,
    Context,
    ErrorBound,
    ErrorModel,
    EvaluationKeys,
    Evaluator,
    Graph,
    LinearTransform,
    Operand,
    Params,
    Plaintext,
    PublicKey,
    Share,
    linear_transform_rotations,
    max_log_pq,
    polynomial_depth,
    preset,
    preset_names,
    sum_slots_rotations,
)
from crenel.errors import (
    CrenelError,
    DeviceError,
    InsecureParametersWarning,
    KeyMissingError,
    KeyModeWarning,
    OutOfMemoryError,
    ParameterError,
    SerializationError,
    StateError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from crenel.ckks.arrays import Array, encrypt
    from crenel.ckks.pool import DevicePool, PoolBootstrapper, PoolEvaluator
    from crenel.ckks.programs import keys_for, needs
    from crenel.ckks.recorder import Needs

chebyshev_fit = Evaluator.chebyshev_fit

# Imported at their first use, which programs of operands never come to.
_LATER = {
    "Array": "crenel.ckks.arrays",
    "DevicePool": "crenel.ckks.pool",
    "Needs": "crenel.ckks.recorder",
    "PoolBootstrapper": "crenel.ckks.pool",
    "PoolEvaluator": "crenel.ckks.pool",
    "encrypt": "crenel.ckks.arrays",
    "keys_for": "crenel.ckks.programs",
    "needs": "crenel.ckks.programs",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_LATER[name]), name)
    return value


def __dir__() -> list[str]:
    return __all__  # with what is imported later


@overload
def concatenate(ciphertexts: Iterable[Ciphertext | Operand]) -> Ciphertext: ...
@overload
def concatenate(ciphertexts: Sequence[Array], axis: int = 0) -> Array: ...
def concatenate(
    ciphertexts: Iterable[Ciphertext | Operand] | Sequence[Array], axis: int = 0
) -> Ciphertext | Array:
    """Ciphertexts: the vectors of all, one after the other, as one batch. Arrays: along an axis, as NumPy's;
    level l -> l where whole vectors are joined or all fit into one vector, else l -> l - 1.

    Raises StateError unless ciphertexts have equal parameters, device, secret key, level, scale, slots and
    components; ParameterError for none, and for shapes that differ beside the axis.
    """
    parts = list(ciphertexts)
    packed = [hasattr(type(part), "bound_to") for part in parts]
    if any(packed):
        from crenel.ckks import arrays

        if not all(packed):
            other = type(parts[packed.index(False)]).__name__
            raise TypeError(f"concatenation of arrays and a {other}: expected arrays, or ciphertexts alone")
        return arrays.concatenate(cast("list[Array]", parts), axis)  # as was just seen
    if axis != 0:
        raise ParameterError(f"axis {axis}: ciphertexts are joined along axis 0", {"axis": axis})
    return _crenel.concatenate(cast("list[Ciphertext | Operand]", parts))


__all__ = [
    "Array",
    "BlockTransform",
    "BootstrapLevels",
    "BootstrapOptions",
    "BootstrapReport",
    "Bootstrapper",
    "ChebyshevFit",
    "Ciphertext",
    "Client",
    "Context",
    "CrenelError",
    "DeviceError",
    "DevicePool",
    "ErrorBound",
    "ErrorModel",
    "EvaluationKeys",
    "Evaluator",
    "Graph",
    "InsecureParametersWarning",
    "KeyMissingError",
    "KeyModeWarning",
    "LinearTransform",
    "Needs",
    "Operand",
    "OutOfMemoryError",
    "ParameterError",
    "Params",
    "Plaintext",
    "PoolBootstrapper",
    "PoolEvaluator",
    "PublicKey",
    "SerializationError",
    "Share",
    "StateError",
    "UnsupportedError",
    "chebyshev_fit",
    "concatenate",
    "encrypt",
    "keys_for",
    "linear_transform_rotations",
    "max_log_pq",
    "needs",
    "polynomial_depth",
    "preset",
    "preset_names",
    "sum_slots_rotations",
]
