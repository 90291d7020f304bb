"""What pickling calls, and what it is refused with.

Parameters and options are values and travel. Whatever lies on a device does not: a pickle would have to hold
memory of a GPU, or a secret key that nobody asked to write down.
"""

from __future__ import annotations

import copyreg
from typing import Any, NoReturn

from crenel import _crenel
from crenel._crenel import BootstrapOptions, Optimisations, Params, TfheParams
from crenel.errors import SerializationError, UnsupportedError


class NotPicklableError(UnsupportedError, TypeError):
    """UnsupportedError, and what pickle's callers expect: a TypeError.

    ``fields``: "type", the object's, and "instead", what to send.
    """

    @property
    def code(self) -> str:
        """That of its base, which is the class of the error tree."""
        return UnsupportedError.__name__


SECRET = (
    "the secret key leaves a process only by client.export_secret_key(), which "
    "context.client_from_secret_key() reads; workers that are forked have their parent's client as a global"
)
_BYTES = "send to_bytes(), and read it with the {} of a context"
_CONTEXT = "send its params, and make a context of them in the worker"
_KEYS = "send what it was made from, and make it with a context in the worker"
INSTEAD = {
    "Client": SECRET,
    "TfheClient": SECRET,
    "Context": _CONTEXT,
    "TfheContext": _CONTEXT,
    "Device": "open it in the worker by its name",
    "Ciphertext": _BYTES.format("ciphertext_from_bytes"),
    "TfheCiphertext": _BYTES.format("ciphertext_from_bytes"),
    "TfheIntegers": _BYTES.format("integers_from_bytes"),
    "TfheCompressed": _BYTES.format("compressed_from_bytes"),
    "Plaintext": _BYTES.format("plaintext_from_bytes"),
    "PublicKey": _BYTES.format("public_key_from_bytes"),
    "EvaluationKeys": _BYTES.format("evaluation_keys_from_bytes"),
    "TfheEvaluationKeys": _BYTES.format("evaluation_keys_from_bytes"),
    "BridgeKeys": "send to_bytes(), and read it with crenel.bridge.keys_from_bytes",
    "BridgeCore": _KEYS,
    "Evaluator": _KEYS,
    "TfheEvaluator": _KEYS,
    "Operand": _BYTES.format("ciphertext_from_bytes"),
    "Bootstrapper": _KEYS,
    "LinearTransform": _KEYS,
    "BlockTransform": _KEYS,
    "Graph": _KEYS,
    "ErrorModel": "send its params, and make it of them in the worker",
    "ErrorBound": "send the params, and run the circuit on an ErrorModel of them in the worker",
    "ChebyshevFit": (
        "send its coefficients and interval: polynomial(x, coefficients, 'chebyshev', interval) of an "
        "evaluator in the worker is what a call of it does"
    ),
    "Share": "send its values",
    "Account": "send its records",
    "CancelToken": "it is of one process: tell a worker by a message",
    "stoppable": "it is of one thread: make it in the worker",
}


_NUMBERS = "send its numbers, or its text"
INSTEAD |= dict.fromkeys(
    (
        "BootstrapLevels",
        "BootstrapReport",
        "BridgeKeyFacts",
        "BridgeNoise",
        "DeviceInfo",
        "FhecoreCounts",
        "FhecoreWork",
        "MemoryUse",
        "PoolUse",
        "SecretMemory",
    ),
    _NUMBERS,
)
INSTEAD |= dict.fromkeys(("FhecoreUnit", "TfheIntegerEvaluator", "TfheMessageEvaluator"), _KEYS)
INSTEAD |= dict.fromkeys(
    ("TfheCircuitValue", "TfheIntegerCircuit"), "send the program: ev.circuit in the worker describes it anew"
)
OPTIONS = (
    "slots",
    "message_ratio",
    "message",
    "order",
    "arcsine_degree",
    "target_level",
    "iterations",
    "keys",
    "coeff_to_slot_stages",
    "slot_to_coeff_stages",
    "graph",
    "pack",
    "values",
    "over_mod_raise",
    "folded_sums",
    "short_raise",
    "real_symmetry",
    "aligned_keys",
)


def refuse(thing: object, instead: str) -> NoReturn:
    """Raises NotPicklableError that says what to send instead."""
    name = type(thing).__name__
    raise NotPicklableError(f"{name} objects are not pickled: {instead}", {"type": name, "instead": instead})


def load_params(data: bytes) -> Params:
    """Parameters that were pickled; insecure ones warn here too: another process may have made them."""
    return Params.from_bytes(data, allow_insecure=True)


def load_tfhe_params(data: bytes) -> TfheParams:
    """TFHE parameters that were pickled; a Context of insecure ones warns."""
    return TfheParams.from_bytes(data, allow_insecure=True)


def load_options(values: tuple) -> BootstrapOptions:
    """Options of a bootstrap that were pickled: their values, in the order of OPTIONS, which only grows.
    What an earlier version did not know is as by default. Raises SerializationError for more values, those
    of a later version."""
    if len(values) > len(OPTIONS):
        raise SerializationError(
            f"pickled options of a bootstrap have {len(values)} values, expected at most {len(OPTIONS)}: a "
            "later version wrote them",
            {"found": len(values), "expected": len(OPTIONS)},
        )
    return BootstrapOptions(**dict(zip(OPTIONS, values, strict=False)))


def load_optimisations(off: list[str]) -> Optimisations:
    """Optimisations that were pickled: the names of those that are off."""
    return Optimisations(**dict.fromkeys(off, False))


def _reduce_method(method: Any) -> tuple:
    """As Python's own bound methods, which bring their object: Pool.map(client.encrypt) meets its refusal."""
    return getattr, (method.__self__, method.__name__)


def _refuse_class(kind: type, instead: str) -> None:
    def reduce(thing: object) -> Any:
        refuse(thing, instead)

    copyreg.pickle(kind, reduce)


copyreg.pickle(Params, lambda params: (load_params, (params.to_bytes(),)))
copyreg.pickle(TfheParams, lambda params: (load_tfhe_params, (params.to_bytes(),)))
copyreg.pickle(
    BootstrapOptions, lambda options: (load_options, (tuple(getattr(options, name) for name in OPTIONS),))
)
copyreg.pickle(Optimisations, lambda wanted: (load_optimisations, (wanted.off,)))
copyreg.pickle(type(_crenel.BootstrapOptions().__repr__), _reduce_method)
for _name, _instead in INSTEAD.items():
    _refuse_class(getattr(_crenel, _name), _instead)
