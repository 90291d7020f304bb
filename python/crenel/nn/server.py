"""The server's side: a program with a client's keys."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from crenel import ckks
from crenel.errors import KeyMissingError, StateError
from crenel.nn.client import EncryptedTensor, same_program
from crenel.nn.encrypted import Encoded, Encrypted
from crenel.nn.interpret import Watch, walk
from crenel.nn.plan import bootstrap_options

if TYPE_CHECKING:
    from crenel.nn.program import Program


@dataclass(frozen=True, eq=False)
class Server:
    """A program on a device with evaluation keys: ``run`` computes, with no secret. See `Program.bind`."""

    program: Program
    context: ckks.Context
    evaluator: ckks.Evaluator
    encoded: Encoded
    bootstrappers: Mapping[int, ckks.Bootstrapper]
    """By slots."""

    @classmethod
    def bound(cls, program: Program, keys: ckks.EvaluationKeys | bytes | str | os.PathLike[str]) -> Server:
        """As `Program.bind`."""
        context = ckks.Context(program.params, device=program.device)
        if isinstance(keys, ckks.EvaluationKeys):
            try:
                evaluator = context.evaluator(keys)
            except StateError:  # of another device: they travel as bytes, which says what else may differ
                evaluator = context.evaluator(context.evaluation_keys_from_bytes(keys.to_bytes()))
        elif isinstance(keys, bytes):
            evaluator = context.evaluator(context.evaluation_keys_from_bytes(keys))
        else:
            evaluator = context.evaluator(context.load_evaluation_keys(keys))
        _complete(program, evaluator.keys)
        boots = {
            slots: context.bootstrapper(evaluator.keys, bootstrap_options(slots))
            for slots in program.demand.bootstraps
        }
        return cls(program, context, evaluator, Encoded(program.plan, context, program.transforms), boots)

    def run(self, tensor: EncryptedTensor, watch: Watch[ckks.Ciphertext] | None = None) -> EncryptedTensor:
        """The network's result for encrypted samples.

        watch : called with the number and the ciphertexts of each value when it is made

        Raises StateError for a tensor of another program, for more samples than the program was compiled for
        (``fields["batch"]``), and for one under another key than the evaluation keys'.
        """
        plan = self.program.plan
        same_program(tensor, self.program.fingerprint)
        first = plan.values[0]
        found = [(c.level, c.slots) for c in tensor.ciphertexts]
        expected = [(first.level, first.layout.slots)] * first.layout.ciphertexts
        if found != expected or tensor.samples > self.program.batch:
            raise StateError(
                f"{len(found)} ciphertexts of (level, slots) {found[0]} and {tensor.samples} samples, "
                f"expected {len(expected)} of {expected[0]} and at most {self.program.batch} samples",
                {"ciphertexts": len(found), "samples": tensor.samples, "batch": self.program.batch},
            )
        result = walk(
            plan, Encrypted(self.evaluator, self.encoded, self.bootstrappers), tensor.ciphertexts, watch
        )
        return EncryptedTensor(tuple(result), tensor.program, tensor.single)

    def tensor_from_bytes(self, data: bytes) -> EncryptedTensor:
        """What `EncryptedTensor.to_bytes` of a client sent. Raises as `EncryptedTensor.from_bytes`."""
        return EncryptedTensor.from_bytes(data, self.context)


def _complete(program: Program, keys: ckks.EvaluationKeys) -> None:
    demand = program.demand
    missing = {k: level for k, level in demand.rotations.items() if _level(keys, k) < level}
    short = [f"{k} to level {level}" for k, level in missing.items()]
    relinearise = demand.relinearisation
    if relinearise is not None and _level(keys, "relinearisation") < relinearise:
        short.append(f"relinearisation to level {relinearise}")
    if short:
        raise KeyMissingError(
            f"keys are missing, or serve too low a level: {', '.join(short)}. "
            "client.evaluation_keys(spec) makes all of them",
            {"rotations": list(missing), "keys": ", ".join(short)},
        )


def _level(keys: ckks.EvaluationKeys, key: int | Literal["relinearisation"]) -> int:
    """Highest level that a key serves; -1 without it."""
    level = keys.level_of(key)
    return -1 if level is None else level
