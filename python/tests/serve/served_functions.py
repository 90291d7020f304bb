"""Functions that tests serve: worker processes import them by name."""

from __future__ import annotations

from functools import cache

import numpy as np

from crenel import ckks, serve, tfhe

WEIGHTS = np.linspace(-1.0, 1.0, 60)
SLOTS = 16


def rotated(ev, x):
    """The square, one slot on."""
    return ev.rotate(ev.rescale(ev.square(x)), 1)


def score(a):
    """One number of sixty."""
    return (a @ WEIGHTS + 1).sum()


def both(a, b):
    """A product and a sum: the second is taken at the level of the first."""
    return a * b, a + b


def refreshing(context):
    """A bootstrap and a square, of vectors of 16 slots."""
    boot = context.bootstrapper(slots=SLOTS)
    return lambda x: serve.refreshed(boot, x).square()


def _settle(ev, payer, payee, amount):
    enough = payer >= amount
    moved = ev.select(enough, amount, 0)
    return payer - moved, payee + moved, enough


def settle(ev, payer, payee, amount):
    """A transfer of tokens, as one circuit."""
    return ev.circuit(_settle, payer, payee, amount)


def doubled_where(ev, a, bits):
    """2 a where the bit is set, else a."""
    return ev.select(bits, a * 2, a)


@cache
def functions() -> dict[str, serve.Function | serve.IntegerFunction]:
    """All of them, by name, of toy parameters."""
    leveled = ckks.preset("toy-leveled-n14-s40", allow_insecure=True)
    boot = ckks.preset("toy-boot40", allow_insecure=True)
    lut = tfhe.preset("toy-lut4", allow_insecure=True)
    found = [
        serve.Function("rotated", leveled, rotated, rotations=(1,)),
        serve.Function.of("score", leveled, score, [np.ones(60)]),
        serve.Function.of("both", leveled, both, [serve.Numbers((2, 3)), serve.Numbers((2, 3), level=3)]),
        serve.Function.of("refreshed", boot, make=refreshing, inputs=[serve.Vector(SLOTS, level=0)]),
        serve.IntegerFunction("settle", lut, settle, ("uint8", "uint8", "uint8")),
        serve.IntegerFunction("doubled", lut, doubled_where, (serve.Integers("int20", (2,)), "bool")),
    ]
    return {f.name: f for f in found}
