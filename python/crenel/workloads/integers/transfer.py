"""Token transfers: all or nothing, by balances and amounts that the server does not see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crenel.errors import StateError

if TYPE_CHECKING:
    from crenel.tfhe import Ciphertext, Evaluator, Integers


def transfer(
    ev: Evaluator, payer: Integers, payee: Integers, amount: Integers
) -> tuple[Integers, Integers, Ciphertext]:
    """What payers and payees have afterwards, and bits that say where the amount was moved.

    payer, payee, amount : unsigned integers of one type and shape: an element is a transfer of its own, so no
        account may be in two of them

    One circuit (Evaluator.circuit): both accounts' carries are found while payer and amount are compared.
    Where the payer has less than the amount, 0 is moved; nobody sees which. A payee's sum is modulo 2^bits:
    who makes tokens must make fewer than 2^bits. Raises StateError for types or shapes that differ, and for
    signed types.
    """
    kinds = {f"{x.type} of shape {x.shape}" for x in (payer, payee, amount)}
    if len(kinds) != 1:
        raise StateError(
            f"transfer: {' and '.join(sorted(kinds))}, expected one type and shape",
            {"found": " and ".join(sorted(kinds))},
        )
    if amount.type.signed:  # amounts below 0 would be moved backwards
        raise StateError(f"transfer: {amount.type}, expected an unsigned type", {"found": str(amount.type)})
    return ev.circuit(_moved, payer, payee, amount)


def _moved(
    ev: Evaluator, payer: Integers, payee: Integers, amount: Integers
) -> tuple[Integers, Integers, Ciphertext]:
    enough = ev.greater_equal(payer, amount)
    moved = ev.select(enough, amount, 0)
    return ev.sub(payer, moved), ev.add(payee, moved), enough


def transfer_clear(
    payer: Sequence[int], payee: Sequence[int], amount: Sequence[int], bits: int
) -> tuple[list[int], list[int], list[bool]]:
    """The same of Python's integers."""
    enough = [have >= asked for have, asked in zip(payer, amount, strict=True)]
    moved = [asked if yes else 0 for asked, yes in zip(amount, enough, strict=True)]
    left = [have - m for have, m in zip(payer, moved, strict=True)]
    return left, [(have + m) % (1 << bits) for have, m in zip(payee, moved, strict=True)], enough
