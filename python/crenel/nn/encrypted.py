"""A plan read on ciphertexts: the samples of a batch are their rows, and a key is read once for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crenel import ckks
from crenel.errors import ParameterError
from crenel.nn.interpret import prepared
from crenel.nn.linear import SlotTransform
from crenel.nn.ops import Reals
from crenel.nn.plan import Boot, Contract, Plan, Transform, linear


class Encoded:
    """The matrices and constants of a plan, encoded for their levels on one device."""

    def __init__(
        self,
        plan: Plan,
        context: ckks.Context,
        transforms: Mapping[int, SlotTransform],
        staged: bool = False,
    ) -> None:
        """transforms: matrices, by the number of the value that a step makes. staged: each is encoded when it
        is met, in every run, and the one before it dropped; those that are missing are made from the plan."""
        self.plan, self.context, self.transforms, self.staged = plan, context, transforms, staged
        self.copies: dict[int, tuple[int, int]] = {}
        self.blocks: dict[int, ckks.BlockTransform] = {}
        self.biases: dict[int, list[ckks.Plaintext | None]] = {}
        for step in plan.steps:
            if not linear(step):
                continue
            matrix = self._matrix(step)
            stride = matrix.slots // matrix.copies
            self.copies[step.out] = matrix.copies, stride
            if not staged:
                self.blocks[step.out] = self._block(step)
            self.biases[step.out] = [
                context.encode(bias, level=step.level - 1, slots=stride) if bias.any() else None
                for bias in matrix.bias
            ]

    def block(self, step: Transform | Contract) -> ckks.BlockTransform:
        """The matrices of a step."""
        found = self.blocks.get(step.out)
        if found is None:  # only where they are staged
            self.drop()  # before there is another: two may not fit
            found = self._block(step)
            self.blocks[step.out] = found
        return found

    def drop(self) -> None:
        """Gives back the memory of staged matrices, and what is idle beside them, which is of other sizes."""
        if self.staged:
            self.blocks.clear()
            self.context.device.trim()

    def _matrix(self, step: Transform | Contract) -> SlotTransform:
        return self.transforms.get(step.out) or prepared(self.plan, step)

    def _block(self, step: Transform | Contract) -> ckks.BlockTransform:
        matrix = self._matrix(step)
        try:
            return ckks.BlockTransform(
                self.context, matrix.full(), level=step.level, slots=matrix.slots, baby_steps=matrix.babies
            )
        except ParameterError as error:  # weights far larger than what samples showed of the result
            origin = self.plan.values[step.out].origin
            raise ParameterError(f"{origin}: {error}", error.fields | {"origin": origin}) from error

    @property
    def nbytes(self) -> int:
        """Of the diagonals, on the device now."""
        return sum(block.plaintext_bytes for block in self.blocks.values())


class Encrypted:
    """`Operations` of an evaluator."""

    def __init__(
        self,
        evaluator: ckks.Evaluator,
        encoded: Encoded,
        bootstrappers: Mapping[Boot, ckks.Bootstrapper],
        recording: bool = False,
    ) -> None:
        """bootstrappers: by kind. recording: without recordings of bootstraps, for one of the whole."""
        self.ev, self.encoded, self.recording = evaluator, encoded, recording
        self.bootstrappers = bootstrappers

    def at(self, a: ckks.Ciphertext, level: int) -> ckks.Ciphertext:
        return a if a.level == level else self.ev.adjust_level(a, level)

    def of_slots(self, a: ckks.Ciphertext, slots: int) -> ckks.Ciphertext:
        return a if a.slots == slots else self.ev.with_slots(a, slots, repeating=True)

    def transform(
        self, step: Transform | Contract, inputs: Sequence[ckks.Ciphertext]
    ) -> list[ckks.Ciphertext]:
        return self.encoded.block(step)(self.ev, inputs)

    def copies(self, step: Transform) -> tuple[int, int]:
        return self.encoded.copies[step.out]

    def rotated(self, a: ckks.Ciphertext, steps: Sequence[int]) -> list[ckks.Ciphertext]:
        moves = [k for k in steps if k]
        found = iter(self.ev.rotate_many(a, moves) if moves else ())
        return [next(found) if k else a for k in steps]

    def inner(self, a: Sequence[ckks.Ciphertext], b: Sequence[ckks.Ciphertext]) -> ckks.Ciphertext:
        total = self.ev.multiply_lazy(a[0], b[0])
        for x, y in zip(a[1:], b[1:], strict=True):
            total = self.ev.add(total, self.ev.multiply_lazy(x, y))
        return self.ev.relinearise_rescale(total)

    def biased(self, step: Transform, output: int, a: ckks.Ciphertext) -> ckks.Ciphertext:
        bias = self.encoded.biases[step.out][output]
        return a if bias is None else self.ev.add(a, bias)

    def sums(self, a: ckks.Ciphertext, count: int, stride: int) -> ckks.Ciphertext:
        return self.ev.sum_slots(a, count, stride)

    def series(self, a: ckks.Ciphertext, coefficients: Reals) -> ckks.Ciphertext:
        return self.ev.polynomial(a, coefficients, basis="chebyshev")

    def add(self, a: ckks.Ciphertext, b: ckks.Ciphertext) -> ckks.Ciphertext:
        return self.ev.add(a, b)

    def add_number(self, a: ckks.Ciphertext, number: float) -> ckks.Ciphertext:
        return self.ev.add(a, number)

    def negate(self, a: ckks.Ciphertext) -> ckks.Ciphertext:
        return self.ev.negate(a)

    def product(self, a: ckks.Ciphertext, b: ckks.Ciphertext) -> ckks.Ciphertext:
        return self.ev.multiply_rescale(a, b)

    def refresh(self, a: Sequence[ckks.Ciphertext], boot: Boot, level: int) -> list[ckks.Ciphertext]:
        self.encoded.drop()  # bootstraps take memory themselves
        rows, slots = a[0].batch, a[0].slots
        kind = self.bootstrappers[boot]
        run = kind.eager if self.recording else kind
        # A bootstrapper keeps one recording, of one number of slots: another would be made anew each time.
        wide = [self.of_slots(x, boot.slots) for x in a]
        if boot.vectors == 1 or rows == 1:
            found = run(wide, self.ev)
        else:
            vectors = run([x[k] for x in wide for k in range(rows)], self.ev)
            parts = (vectors[k : k + rows] for k in range(0, len(vectors), rows))
            found = [ckks.concatenate(part) for part in parts]
        return [self.at(self.of_slots(x, slots), level) for x in found]

    def level(self, a: ckks.Ciphertext) -> int:
        return a.level
