"""Seeds and the numbers that benches feed: edges, random, and aimed at the reduction's corners."""

from __future__ import annotations

import functools
import os
import random
import zlib


@functools.cache
def run_seed() -> int:
    """Seed of this run: CRENEL_SEED, else drawn from the system. Printed: a failure can be repeated."""
    text = os.environ.get("CRENEL_SEED")
    seed = int(text, 0) if text else random.SystemRandom().getrandbits(32)
    print(f"CRENEL_SEED={seed}", flush=True)
    return seed


def rng(name: str) -> random.Random:
    """Generator of one test: depends on the run's seed and the test's name, not on the tests before it."""
    return random.Random(run_seed() << 32 | zlib.crc32(name.encode()))


def edge_shifted(width: int) -> list[int]:
    """Moduli q' at the edges of (2^(W-4), 2^W): the least ones, powers of two and their neighbours, the
    greatest; for W = 32 that includes 2^28 + 1, 2^31 - 1, 2^32 - 5 and 2^32 - 1."""
    top = 1 << width
    near = {(1 << e) + d for e in range(width - 4, width) for d in (-1, 0, 1, 2, 3)}
    near |= {top - d for d in range(1, 7)} | {top - top // 3, top // 3}
    return sorted(q for q in near if top >> 4 < q < top)


def random_shifted(source: random.Random, width: int) -> int:
    """q' uniform in bit length, then in value."""
    bits = source.randint(width - 3, width)
    return source.randint(max((1 << (bits - 1)), (1 << (width - 4)) + 1), (1 << bits) - 1)


def any_shifted(source: random.Random, width: int) -> int:
    return source.choice(edge_shifted(width)) if source.random() < 0.5 else random_shifted(source, width)


def word(source: random.Random, width: int, shifted: int) -> int:
    """A W-bit operand: zero, one, all ones, next to q', below q', or anything (often >= q')."""
    top = (1 << width) - 1
    kind = source.randrange(8)
    if kind < 4:
        return source.choice((0, 1, top, top - 1, top >> 1, shifted - 1, shifted, min(shifted + 1, top)))
    return source.randrange(shifted) if kind < 6 else source.randint(0, top)


def adversarial_product(source: random.Random, width: int, shifted: int) -> int:
    """p < 2^(2W) at or next to a multiple of q', often the largest: there the quotient estimate is off."""
    largest = ((1 << (2 * width)) - 1) // shifted
    kind = source.randrange(4)
    if kind == 0:
        multiple = largest - source.randrange(4)
    elif kind == 1:
        multiple = source.randint(0, largest)
    else:  # a multiple whose low W-5 bits are nearly all ones: the cut of p costs most
        multiple = source.randint(0, largest)
        block = 1 << (width - 5)
        p = (multiple * shifted // block + 1) * block - 1 - source.randrange(3)
        return min(max(p, 0), (1 << (2 * width)) - 1)
    return min(max(multiple * shifted + source.randint(-2, 2), 0), (1 << (2 * width)) - 1)
