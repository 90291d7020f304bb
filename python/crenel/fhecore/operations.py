"""Tile products, transforms and base conversions on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from crenel import _crenel
from crenel.errors import ParameterError
from crenel.fhecore import arrays
from crenel.fhecore.counts import record

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from crenel import ckks

_TILE = (16, 16)


@lru_cache(maxsize=8)
def _unit(device: str) -> _crenel.FhecoreUnit:
    """The units of a device, with the tables of what they computed so far."""
    return _crenel.FhecoreUnit(device)


def _tiles(array: ArrayLike, name: str) -> NDArray[np.uint32]:
    values = arrays.words(array, name)
    if values.shape[-2:] != _TILE:
        raise ParameterError(
            f"{name} has shape {values.shape}, expected (..., 16, 16)", {"shape": list(values.shape)}
        )
    return values


def _batch(shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The common batch axes, by NumPy's broadcasting."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        text = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ParameterError(f"batch axes do not broadcast: {text}", {"shapes": text}) from None


def fhe_sync(
    a: ArrayLike, b: ArrayLike, c: ArrayLike | None, q: ArrayLike, *, device: str = "auto"
) -> NDArray[np.uint32]:
    """D = A B + C modulo q, column by column: the intrinsic on tiles of 16 x 16.

    Parameters
    ----------
    a : (..., 16, 16) integers, any words 0..2^32 - 1
    b : (..., 16, 16) integers; words below q always do (see Raises)
    c : as b; None for zeros
    q : moduli in 1..2^32 - 1: one, (16,) one a column, or (..., 16) one a column and tile
    device : "auto", "ref", "cpu", "cuda", "cuda:<index>"

    Leading axes are batches and broadcast. One tile is two FHEC instructions.

    Returns
    -------
    (..., 16, 16) uint32, D[i, j] = (sum_k A[i, k] B[k, j] + C[i, j]) mod q[j], in [0, q[j])

    Raises
    ------
    ParameterError
        for other shapes, dtypes and words; and for a word of b or c that the shift of a small modulus pushes
        out of 32 bits: for q <= 2^28 of n bits they must be below 2^(n + 2) (fhecore/doc/isa.md, faults)
    DeviceError
        when the device cannot be had

    Source: [FHECore] Figure 6; arithmetic of fhecore/doc/isa.md.
    """
    operands = {"a": _tiles(a, "a"), "b": _tiles(b, "b")}
    if c is not None:
        operands["c"] = _tiles(c, "c")
    columns = _columns(q)
    shapes = {name: v.shape[:-2] for name, v in operands.items()} | {"q": columns.shape[:-1]}
    batch = _batch(shapes)
    if 0 in batch:
        return np.empty((*batch, *_TILE), np.uint32)
    tiles = [arrays.flat(np.broadcast_to(v, (*batch, *_TILE))) for v in operands.values()]
    if columns.size > 16:
        columns = np.broadcast_to(columns, (*batch, 16))
    left, right, *rest = tiles
    values, executed = _unit(device).fhe_sync(
        left, right, rest[0] if rest else None, [int(x) for x in columns.reshape(-1)]
    )
    record(executed)
    return values.reshape(*batch, *_TILE)


def _columns(q: ArrayLike) -> NDArray[np.uint32]:
    """Moduli as (1,), (16,) or (..., 16) uint32, checked."""
    if not isinstance(q, (list, tuple)) and np.ndim(q) == 0:
        return np.array([arrays.modulus(q)], np.uint32)
    columns = arrays.words(q, "q")
    if columns.shape[-1] != 16:
        raise ParameterError(
            f"q has shape {columns.shape}, expected one modulus or (..., 16)", {"shape": list(columns.shape)}
        )
    if not columns.all():
        place = [int(i) for i in np.argwhere(columns == 0)[0]]
        raise ParameterError(f"q{place} = 0, expected 1..2^32 - 1", {"q": 0})
    return columns


def ntt(
    x: ArrayLike,
    q: int | Sequence[int] | ckks.Params | ckks.Context,
    *,
    inverse: bool = False,
    decomposition: str = "16^4",
    device: str = "auto",
) -> NDArray[np.uint32]:
    """Negacyclic number-theoretic transform made of `fhe_sync` and one element-wise product a coefficient.

    Parameters
    ----------
    x : (..., N) residues for one modulus, (..., limbs, N) for several, in [0, q)
    q : an odd prime below 2^31 with q = 1 mod 2N, or distinct ones, one a limb; parameters or a context stand
        for all their primes
    inverse : from evaluation to coefficient form, with the factor 1/N
    decomposition : "16^4": passes of radix 16, N = 2^8..2^17 (1,024 fhe_sync a limb of 2^16);
        "256x256": two passes of radix 256, N = 2^16 (8,192 fhe_sync)
    device : as in `fhe_sync`

    Returns
    -------
    x's shape, uint32. Evaluation form is bit-reversed: element i is the value at psi^(2 brev(i) + 1), psi the
        smallest primitive 2N-th root of unity: the bits of the library's own transforms

    Raises
    ------
    ParameterError
        for other sizes, primes and values; the message names the first bad value and its place

    Source: decomposition of the NTT into matrix products, [FHECore] Section V-A, with the powers of psi
    folded into the matrices (fhecore/doc/mapping.md).
    """
    values = arrays.words(x, "x")
    one = not isinstance(q, (list, tuple, _crenel.Params, _crenel.Context)) and np.ndim(q) == 0
    primes = [arrays.modulus(q)] if one else arrays.moduli(q, "q")
    log_n = arrays.log_dim(values, "x")
    if not one:
        arrays.expect_limbs(values, len(primes), "x")
    if values.size == 0:
        return np.empty_like(values)
    result, executed = _unit(device).transform(arrays.flat(values), log_n, primes, inverse, decomposition)
    record(executed)
    return result.reshape(values.shape)


def base_convert(
    x: ArrayLike,
    sources: Sequence[int] | ckks.Params | ckks.Context,
    destinations: Sequence[int] | ckks.Params | ckks.Context,
    *,
    device: str = "auto",
) -> NDArray[np.uint32]:
    """Centred RNS base conversion made of `fhe_sync`, its columns being the destinations.

    Parameters
    ----------
    x : (..., len(sources), N) residues in coefficient form, in [0, d_j); N = 2^4..2^17
    sources, destinations : distinct odd primes below 2^31, at most 128 together
    device : as in `fhe_sync`

    Returns
    -------
    (..., len(destinations), N) uint32: the residues of x + u D, D the product of the sources, x in
        (-D/2, D/2), u an integer of zero mean with |u| at most half the number of sources: the bits of the
        library's own conversion

    Raises
    ------
    ParameterError
        for other sizes, primes and values

    Source: equation 5 of [FHECore], transposed because the unit has one modulus a column; centred digits as
    in docs/design/0007.
    """
    values = arrays.words(x, "x")
    from_primes, to_primes = arrays.moduli(sources, "sources"), arrays.moduli(destinations, "destinations")
    log_n = arrays.log_dim(values, "x")
    arrays.expect_limbs(values, len(from_primes), "x")
    if values.size == 0:
        return np.empty((*values.shape[:-2], len(to_primes), values.shape[-1]), np.uint32)
    result, executed = _unit(device).base_convert(arrays.flat(values), log_n, from_primes, to_primes)
    record(executed)
    return result.reshape(*values.shape[:-2], len(to_primes), values.shape[-1])
