"""Parts of make.py that came with forms: what kinds of before are written like today, and what they may hold.

Sets of a few primes and of small degrees keep the files small; none of them has any security.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import numpy as np

from crenel import ckks, nn, tfhe

SHORT = 1 << 16  # of a short level: docs/reference/file-format.md, "Tensors"
FEWER = -90  # failures that the small sets have room for, as a power of two


class Out(Protocol):
    """What takes a file and the values in it."""

    def put(self, file: str, data: bytes, /, **values: object) -> None: ...


def pairs(values: np.ndarray) -> list[list[float]]:
    """Complex numbers for JSON."""
    return [[float(v.real), float(v.imag)] for v in np.asarray(values, complex).ravel()]


def chain(alpha: int) -> ckks.Params:
    """The first levels of boot40, three of its levels for EvalMod and two above, of degree 2^10."""
    whole = ckks.preset("boot40")
    low, high = 7, 6  # main primes of the normal levels, and of those above
    top = whole.normal_top_level
    main = whole.main_primes
    taken = main[:low] + main[whole.levels[top][0] :][:high]
    levels = whole.levels[:5] + [(low + 2 * i, 0) for i in (1, 2, 3)] + [(low + high, 2), (low + high, 4)]
    return ckks.Params.from_primes(
        log_n=10, log_scale=whole.log_scale, main=taken, terminal=whole.terminal_primes,
        auxiliary=whole.special_primes[:alpha], levels=levels, normal_top_level=4,
        name="toy-chain", allow_insecure=True,
    )  # fmt: skip


def levels(out: Out, rng: np.random.Generator) -> None:
    """CKKS: keys of some levels, of short levels and of aligned ones; what a ciphertext may be besides."""
    context = ckks.Context(chain(alpha=3), device="cpu")
    client = context.keygen()
    keys = client.evaluation_keys(rotations={1: 1}, conjugate=True, max_level=1, aligned=True)
    short = client.evaluation_keys(rotations={2: SHORT | 1 << 8 | 4}, relinearisation=False)
    ev = context.evaluator(client.evaluation_keys())
    x, y = rng.uniform(-1, 1, (2, 2, 8))
    a, b = (client.encrypt(v, level=1, slots=8, bound=1.0) for v in (x, y))
    rows = ev.multiply_lazy(a, b)
    out.put("levels-params.safetensors", context.params.to_bytes(), aligned=context.params.highest_aligned(4))
    out.put("levels-secret_key.safetensors", client.export_secret_key())
    out.put("levels-evaluation_keys.safetensors", keys.to_bytes(), rotations=[1])
    out.put("levels-short_keys.safetensors", short.to_bytes(), rotations=[2])
    none = client.evaluation_keys(relinearisation=False)
    out.put("levels-no_keys.safetensors", none.to_bytes())
    out.put("levels-rows.safetensors", a.to_bytes(), rows=x.tolist())
    out.put("levels-product.safetensors", rows.to_bytes(), rows=(x * y).tolist())


def sparse(out: Out, rng: np.random.Generator) -> None:
    """CKKS: a sparse main secret."""
    context = ckks.Context(ckks.preset("toy-boot35-h1024", allow_insecure=True), device="cpu")
    client = context.keygen()
    x = rng.uniform(-1, 1, 8) + 1j * rng.uniform(-1, 1, 8)
    out.put("sparse-params.safetensors", context.params.to_bytes())
    out.put("sparse-secret_key.safetensors", client.export_secret_key())
    sent = client.encrypt(x, slots=8, level=0)
    out.put("sparse-ciphertext.safetensors", sent.to_bytes(), slots=pairs(x))


def raised(out: Out, rng: np.random.Generator) -> None:
    """CKKS: keys to the sparse secret of a bootstrap and back, turned ones for OverModRaise too."""
    del rng  # nothing is encrypted
    whole = ckks.preset("boot40")
    params = ckks.Params.from_primes(
        log_n=10, log_scale=whole.log_scale, main=whole.main_primes, terminal=whole.terminal_primes,
        auxiliary=whole.special_primes, levels=whole.levels, normal_top_level=whole.normal_top_level,
        name="toy-raised", allow_insecure=True,
    )  # fmt: skip
    context = ckks.Context(params, device="cpu")
    client = context.keygen()
    options = ckks.BootstrapOptions(slots=1)
    with TemporaryDirectory() as folder:  # a part of all keys of a bootstrap is read from their file
        file = Path(folder) / "keys"
        client.evaluation_keys(bootstrap=options).save(file)
        keys = context.load_evaluation_keys(file, rotations=[], relinearisation=False, conjugate=False)
    out.put("raised-params.safetensors", params.to_bytes())
    out.put("raised-evaluation_keys.safetensors", keys.to_bytes())


def packed(out: Out, rng: np.random.Generator) -> None:
    """TFHE, a bit a step: packed keys with that of packing, arrays that were computed, unsigned integers."""
    context = tfhe.Context(tfhe.preset("toy-lut4", allow_insecure=True), device="cpu")
    client = context.keygen()
    keys = client.evaluation_keys(packing=True)
    ev = context.evaluator(keys)
    small = rng.integers(0, 8, 4)
    wide = rng.integers(0, 2**7, 2, dtype=np.uint8)
    sent = client.encrypt(small, bits=4)
    known = ev._evaluator.trivial(small.astype(np.uint64), sent._data.plain_modulus)
    sums = ev.add(sent, sent)
    out.put("packed-params.safetensors", context.params.to_bytes())
    out.put("packed-secret_key.safetensors", client.export_secret_key())
    out.put("packed-evaluation_keys.safetensors", keys.to_bytes())
    out.put("packed-messages.safetensors", sums.to_bytes(), messages=(2 * small).tolist())
    out.put("packed-known.safetensors", known.to_bytes([4], "uint8"), messages=small.tolist())
    doubled = ev.add(client.encrypt(wide), client.encrypt(wide))
    out.put("packed-integers.safetensors", doubled.to_bytes(), integers=(2 * wide).tolist())


def gates(out: Out, rng: np.random.Generator) -> None:
    """TFHE by differences, several bits a mask; sets of another path and secret, and a published one."""
    context = tfhe.Context(tfhe.preset("toy-packed", allow_insecure=True), device="cpu", packing=2)
    client = context.keygen()
    keys = client.evaluation_keys()
    bits = rng.integers(0, 2, 5).astype(bool)
    out.put("gates-params.safetensors", context.params.to_bytes(), name=context.params.name)
    out.put("gates-secret_key.safetensors", client.export_secret_key())
    out.put("gates-evaluation_keys.safetensors", keys.to_bytes())
    out.put("gates-bits.safetensors", client.encrypt(bits).to_bytes(), bits=bits.tolist())
    for name in ("toy-gadget", "toy-raising-binary", "STD128"):
        found = tfhe.preset(name, allow_insecure=True)
        out.put(f"gates-{name}.safetensors", found.to_bytes(), name=found.name)


def groups(out: Out, rng: np.random.Generator) -> None:
    """TFHE by groups: keys of another number of bits than the set's, and of lists; stored integers."""
    params = tfhe.preset("toy-lut4g4", allow_insecure=True).with_key_group(2)
    context = tfhe.Context(params, device="cpu")
    client = context.keygen()
    keys = client.evaluation_keys(lists=True)
    ev = context.evaluator(keys, max_p_fail_log2=FEWER)
    wide = rng.integers(-(2**7), 2**7, 3, dtype=np.int8)
    out.put("groups-params.safetensors", params.to_bytes(), key_group=2)
    out.put("groups-secret_key.safetensors", client.export_secret_key())
    out.put("groups-evaluation_keys.safetensors", keys.to_bytes())
    stored = ev.compress(client.encrypt(wide), lists=True)
    out.put("groups-integers.safetensors", stored.to_bytes(), integers=wide.tolist())


def weights(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Of unit gain."""
    return rng.normal(size=shape) / np.sqrt(max(1, np.prod(shape[1:])))


def networks(out: Out, rng: np.random.Generator) -> None:
    """crenel.nn: programs that have every step and every operation of plans."""
    for name, model, x, params in models(rng):
        program = nn.compile(
            model, x, params=ckks.preset(params, allow_insecure=True), device="cpu", degree=15
        )
        clear = program.simulate(x[:2], noise=False)
        values = {"inputs": x[:2].tolist(), "outputs": clear.tolist()}
        out.put(f"networks-{name}.safetensors", program.to_bytes(), **values)


def models(rng: np.random.Generator) -> list[tuple[str, nn.Module, np.ndarray, str]]:
    """Name, network, samples, parameters."""
    images = nn.Sequential(
        nn.Conv2d(weights(rng, 2, 1, 3, 3), padding=1),
        nn.BatchNorm(weights(rng, 2), rng.uniform(0.5, 2.0, 2), weights(rng, 2) + 1, weights(rng, 2)),
        nn.SiLU(),
        nn.AvgPool2d(2),
        nn.Residual(nn.Conv2d(weights(rng, 2, 2, 3, 3), padding=1)),
        nn.Concat(nn.Conv2d(weights(rng, 1, 2, 1, 1)), nn.Conv2d(weights(rng, 1, 2, 1, 1))),
        nn.Square(),
        nn.Flatten(),
        nn.Linear(weights(rng, 3, 8)),
    )
    attention = nn.MultiHeadAttention(
        2, *(nn.Linear(weights(rng, 4, 4)) for _ in range(4)), [1.0, 1.0, 1.0, 0.0]
    )
    norm = nn.LayerNorm(rng.uniform(0.5, 2.0, 4), weights(rng, 4), 0.5)
    tokens = nn.Sequential(attention, norm, nn.GELU(), nn.TokenMean())
    scaled = nn.BatchNorm(weights(rng, 2), rng.uniform(0.5, 2.0, 2), weights(rng, 2) + 1, weights(rng, 2))
    norms = nn.Sequential(scaled, nn.Sigmoid(), nn.GlobalAvgPool())
    line = np.polynomial.Polynomial(
        [-2.4, 8]
    )  # of 0.3 + [-1/8, 1/8] into [-1, 1]; its cube below is -5.5 at 0
    cube = nn.Polynomial(((4 * line**3 - 3 * line) / 8 + 0.3).coef)
    filled = nn.Sequential(nn.Linear(np.eye(5)), cube, cube, nn.Linear(weights(rng, 2, 5)))
    deep, shallow = "toy-leveled-n16-s40", "toy-leveled-n15-s40"
    return [
        ("images", images, rng.normal(size=(60, 1, 4, 4)), shallow),
        ("tokens", tokens, rng.normal(size=(60, 4, 4)), "toy-boot40"),
        ("norms", norms, rng.normal(size=(60, 2, 3, 3)), shallow),
        ("filled", filled, 0.3 + rng.uniform(-1, 1, (60, 5)) / 8, deep),
    ]


PARTS: dict[str, Callable[[Out, np.random.Generator], None]] = {
    "levels": levels, "sparse": sparse, "raised": raised, "packed": packed, "gates": gates, "groups": groups,
    "networks": networks,
}  # fmt: skip
