"""The operations of the circuit on ciphertexts: a batch of vectors is one, and reads its key once."""

from __future__ import annotations

from collections.abc import Sequence

from crenel._crenel import Bootstrapper, Ciphertext, Evaluator, Plaintext, concatenate
from crenel.errors import StateError


class Encrypted:
    """`Operations` of an evaluator, and a bootstrapper where the training refreshes."""

    def __init__(
        self, evaluator: Evaluator, bootstrapper: Bootstrapper | None = None, *, eager: bool = False
    ) -> None:
        """
        Parameters
        ----------
        eager : bootstrap without a recording of its own
        """
        self.ev, self.boot, self.eager = evaluator, bootstrapper, eager

    def level(self, a: Ciphertext) -> int:
        return a.level

    def at(self, a: Ciphertext, level: int) -> Ciphertext:
        return a if a.level == level else self.ev.adjust_level(a, level)

    def add(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        return self.ev.add(a, b)

    def add_number(self, a: Ciphertext, number: float) -> Ciphertext:
        return self.ev.add(a, number)

    def by_plaintext(self, a: Ciphertext, plaintext: Plaintext) -> Ciphertext:
        return self.ev.rescale(self.ev.multiply(a, plaintext))

    def product(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        if b.batch < a.batch:
            b = concatenate([b] * a.batch)
        return self.ev.multiply_rescale(a, b)

    def dot(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        products = self.ev.multiply_lazy(a, b)
        total = products[0]
        for row in range(1, products.batch):
            total = self.ev.add(total, products[row])
        return self.ev.relinearise_rescale(total)

    def conjugate(self, a: Ciphertext) -> Ciphertext:
        return self.ev.conjugate(a)

    def sums(self, a: Ciphertext, count: int, stride: int) -> Ciphertext:
        return self.ev.sum_slots(a, count, stride)

    def of_slots(self, a: Ciphertext, slots: int) -> Ciphertext:
        return a if a.slots == slots else self.ev.with_slots(a, slots, repeating=True)

    def refresh(self, a: Sequence[Ciphertext]) -> list[Ciphertext]:
        if self.boot is None:
            raise StateError("a refresh without a bootstrapper", {"operation": "refresh"})
        # One by one: the vectors of the list share bootstraps, as many as fit into one. A bootstrap of pairs
        # takes neighbours: v and x of the same columns.
        vectors = [part[row] for row in range(a[0].batch) for part in a]
        fresh = (self.boot.eager if self.eager else self.boot)(vectors, self.ev)
        return [concatenate(fresh[place :: len(a)]) for place in range(len(a))]
