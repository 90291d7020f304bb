"""`needs` and `keys_for`: what a program asks of keys and parameters, before any key is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from crenel._crenel import Ciphertext, Client, EvaluationKeys, Operand, Params
from crenel.arguments import instance
from crenel.ckks.arrays import Array, encrypt
from crenel.ckks.recorder import Needs, Recorded, Recorder
from crenel.errors import StateError

Input = Array | Ciphertext | Operand | ArrayLike


def needs(program: Callable[..., object], params: Params, *inputs: Input) -> Needs:
    """The keys, each with its highest level, and the levels that ``program(*inputs)`` needs.

    Without a key or a device.

    Parameters
    ----------
    program : a function of operands and arrays, with their operations; prepared linear transforms are called
        as ``t(x.evaluator, x)`` and bootstrappers as ``boot(x)``
    params : the parameters
    inputs : arrays or ciphertexts, of which only shape, packing, level and slots are read; or numbers, which
        stand for `encrypt` of them with its defaults

    Raises StateError where the levels do not suffice, naming the operation that finds none left and the depth
    that would do (``fields["operation"]``, ``["level"]`` that inputs have, ``["needed"]``); UnsupportedError
    for explicit operations of an evaluator. What depends on decrypted numbers cannot be found.
    """
    return needs_of_records(program, params, lambda recorder: [_recorded(recorder, x) for x in inputs])


def needs_of_records(
    program: Callable[..., object],
    params: Params,
    start: Callable[[Recorder], Sequence[Recorded | Array]],
) -> Needs:
    """`needs`, of inputs that ``start(recorder)`` gives: records of vectors and of arrays over them."""
    recorder = Recorder(instance(params, Params, "params"))
    recorder.highest = 0
    started = start(recorder)
    recorder.lowest = available = recorder.highest
    program(*started)
    depth = available - recorder.lowest
    if recorder.shortage is not None:
        raise StateError(
            f"the program needs {depth} levels and its inputs have {available}: the first operation without "
            f"a level is a {recorder.shortage}. Parameters with depth={depth} would do",
            {"operation": recorder.shortage, "level": available, "needed": depth},
        )
    return Needs(
        dict(sorted(recorder.rotations.items())),
        recorder.conjugation,
        recorder.relinearisation,
        recorder.bootstraps,
        depth,
    )


def keys_for(
    client: Client, program: Callable[..., object], *inputs: Input, aligned: bool = False
) -> EvaluationKeys:
    """The evaluation keys that ``program(*inputs)`` needs, and no others: ``needs(...).keys(client)``; with
    `aligned` those for aligned levels beside them (`Client.evaluation_keys`).

    Each serves the levels up to the highest that the program uses it at. Keys of several programs are those
    of the union of their needs: ``(needs(f, params, a) | needs(g, params, b)).keys(client)``.
    """
    found = needs(program, instance(client, Client, "client").context.params, *inputs)
    return found.keys(client, aligned=aligned)


def _recorded(recorder: Recorder, given: object) -> Recorded | Array:
    if isinstance(given, Array):
        return given.bound_to(recorder)
    if isinstance(given, (Ciphertext, Operand)):
        return recorder(given)
    return encrypt(recorder, np.asarray(given))
