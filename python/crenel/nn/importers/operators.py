"""Linear operators of any framework, of modules of crenel.nn.

Tensors are those of one sample: the axis of the samples is the framework's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from crenel.errors import ParameterError
from crenel.nn import activations, modules, networks, ops
from crenel.nn.functions import Reals, reals
from crenel.nn.importers.imported import BATCH, Scope, Tensor, fits
from crenel.nn.networks import concatenated
from crenel.nn.ops import Pair, Shape, windows
from crenel.nn.trace import Module

Quad = tuple[int, int, int, int]
ANY = (1 << 31) - 1  # a number of samples that is not known: what exporters write for an end


# ---- linear ------------------------------------------------------------------------------------------------


def convolution(
    s: Scope, x: Tensor, weight: object, bias: object, stride: Pair, pads: Quad, dilation: Pair, groups: int
) -> Tensor:
    """pads: top, left, bottom, right. What one side has more becomes zeros of the kernel."""
    kernel = reals(weight, "weight")
    if kernel.ndim != 4:
        s.refuse(f"weight with {kernel.ndim} axes: only convolutions of planes are known")
        return Tensor(None)
    _padding_fits(s, x, pads)
    for size, k, step, gap, before, after in zip(
        _planes(s, x)[1:], kernel.shape[2:], stride, dilation, pads[:2], pads[2:], strict=True
    ):
        windows(size + before + after, k, step, 0, gap)  # a place for the kernel, before it grows
    dilated, around = list(dilation), [0, 0]
    for axis, (before, after) in enumerate(((pads[0], pads[2]), (pads[1], pads[3]))):
        around[axis] = max(before, after)
        more = abs(after - before)
        if not more:
            continue
        s.takes(kernel.size * (dilated[axis] + more))
        if more % dilated[axis]:
            kernel, dilated[axis] = _spread(kernel, axis + 2, dilated[axis]), 1
        zeros = [(0, 0)] * 4
        zeros[axis + 2] = (more // dilated[axis], 0) if after > before else (0, more // dilated[axis])
        kernel = np.pad(kernel, zeros)
    module = modules.Conv2d(
        kernel,
        None if bias is None else reals(bias, "bias"),
        stride,
        (around[0], around[1]),
        (dilated[0], dilated[1]),
        groups,
    )
    return s.apply(module, x)


def _spread(kernel: Reals, axis: int, dilation: int) -> Reals:
    """A dilated kernel with its zeros written out along an axis."""
    shape = list(kernel.shape)
    shape[axis] = dilation * (shape[axis] - 1) + 1
    spread = np.zeros(shape)
    spread[(slice(None),) * axis + (slice(None, None, dilation),)] = kernel
    return spread


def same_pads(size: Shape, kernel: Sequence[int], stride: Pair, dilation: Pair, less_first: bool) -> Quad:
    """Padding with which a plane keeps its size divided by the stride, rounded up."""
    sides = []
    for n, k, step, d in zip(size[-2:], kernel, stride, dilation, strict=True):
        total = max((math.ceil(n / step) - 1) * step + d * (k - 1) + 1 - n, 0)
        sides.append((total // 2, total - total // 2) if less_first else (total - total // 2, total // 2))
    return sides[0][0], sides[1][0], sides[0][1], sides[1][1]


def padded(s: Scope, x: Tensor, pads: Quad) -> Tensor:
    """Zeros around planes: a convolution with one, which is merged with the linear layer that follows."""
    if min(pads) < 0:
        s.refuse("negative padding")
        return Tensor(None)
    if not any(pads):
        return x
    channels = _planes(s, x)[0]
    return convolution(s, x, np.ones((channels, 1, 1, 1)), None, (1, 1), pads, (1, 1), channels)


def widened(s: Scope, x: Tensor, before: int, after: int) -> Tensor:
    """Channels of zeros in front and behind."""
    if min(before, after) < 0:
        s.refuse("negative padding")
        return Tensor(None)
    if before == after == 0:
        return x
    shape = s.shape(x)
    channels = before + shape[0] + after
    fits(channels * math.prod(shape[1:]))
    return Tensor(s.tracer.add(ops.Place(channels, before), [x.number], s.place))


def part(s: Scope, x: Tensor, slices: Sequence[slice]) -> Tensor:
    """Every so many rows and columns, from the first on; slices: of all axes, the samples' in front."""
    sizes = (s.samples or ANY, *s.shape(x))
    steps = []
    for size, each in zip(sizes, slices, strict=False):
        whole = each.start in (None, 0) and (each.stop is None or each.stop >= size)
        steps.append((each.step or 1) if whole else 0)
    if len(sizes) != 4 or len(slices) > 4 or steps[:2] != [1, 1][: len(steps)] or min(steps) < 1:
        s.refuse("a part that is not every so many rows and columns")
        return Tensor(None)
    rows, columns = (*steps[2:], 1, 1)[:2]
    return pooled(s, x, (1, 1), (rows, columns), (0, 0, 0, 0))


def linear(s: Scope, x: Tensor, weight: object, bias: object = None) -> Tensor:
    """`Linear`."""
    offset = None if bias is None else reals(bias, "bias")
    return s.apply(modules.Linear(reals(weight, "weight"), offset), x)


def norm(s: Scope, x: Tensor, mean: object, variance: object, weight: Any, bias: Any, eps: float) -> Tensor:
    """With the statistics of the training."""
    if mean is None or variance is None:
        s.refuse("no statistics of the training")
        return x
    return s.apply(modules.BatchNorm(reals(mean, "mean"), reals(variance, "variance"), weight, bias, eps), x)


def pooled(
    s: Scope, x: Tensor, kernel: Pair, stride: Pair, pads: Quad, ceil: bool = False, counted: bool = True
) -> Tensor:
    """Means. ceil: windows that reach out at the end too; counted: do zeros of the padding count?"""
    _padding_fits(s, x, pads)
    if any(pads) and not counted:
        s.refuse("zeros of the padding that do not count")
    if ceil:
        rest = [
            (n + before + after - k) % step
            for n, before, after, k, step in zip(
                _planes(s, x)[1:], pads[:2], pads[2:], kernel, stride, strict=True
            )
        ]
        if any(rest):
            s.refuse("ceil_mode")
    if pads[:2] != pads[2:]:
        x, pads = padded(s, x, pads), (0, 0, 0, 0)
    return s.apply(modules.AvgPool2d(kernel, stride, pads[:2]), x)


def max_pooled(
    s: Scope, x: Tensor, kernel: Pair, stride: Pair, pads: Quad, dilation: Pair, ceil: bool
) -> Tensor:
    """Means in the place of maxima, or maxima by ReLU: `replacements.REPLACED` says that one of them must
    have been asked for."""
    if dilation != (1, 1):
        s.refuse("dilation")
    if s.replace.get("MaxPool") != "relu" or kernel == (1, 1):
        return pooled(s, x, kernel, stride, pads, ceil)
    if any(pads) or ceil:
        s.refuse("padding around maxima, which would have to be less than everything")
    channels = _planes(s, x)[0]
    for size, k, step in zip(_planes(s, x)[1:], kernel, stride, strict=True):
        windows(size, k, step, 0, 1)
    steps = [
        *_doublings(kernel[1], stride[1], columns=True),
        *_doublings(kernel[0], stride[0], columns=False),
    ]
    return s.apply(networks.Sequential(*(_larger_of_two(channels, *step) for step in steps)), x)


def _doublings(size: int, stride: int, columns: bool) -> list[tuple[int, int, bool]]:
    """(distance, stride, columns) of maxima of two with which each place has that of a window: of 2, 4, ..
    and of two that overlap. The last takes the stride."""
    reached, found = 1, list[tuple[int, int, bool]]()
    while reached < size:
        distance = min(reached, size - reached)
        reached += distance
        found.append((distance, stride if reached == size else 1, columns))
    return found or ([(0, stride, columns)] if stride > 1 else [])


def _larger_of_two(channels: int, distance: int, stride: int, columns: bool) -> Module:
    """max(a, b) = a + relu(b - a), a at a place and b so far behind it along an axis; distance 0: a."""

    def kernel(first: float, last: float) -> Reals:
        taps = np.zeros(distance + 1)
        taps[-1] += last
        taps[0] += first
        return np.tile(taps.reshape((1, 1, 1, -1) if columns else (1, 1, -1, 1)), (channels, 1, 1, 1))

    steps = (1, stride) if columns else (stride, 1)
    here = modules.Conv2d(kernel(1.0, 0.0), stride=steps, groups=channels)
    if not distance:
        return here
    more = modules.Conv2d(kernel(-1.0, 1.0), stride=steps, groups=channels)
    return networks.Add(here, networks.Sequential(more, activations.ReLU()))


def to_size(s: Scope, x: Tensor, size: Sequence[int | None]) -> Tensor:
    """Means over equal windows, so many along each axis; None: as many as there are."""
    planes = _planes(s, x)[1:]
    wanted = [n if w is None else w for n, w in zip(planes, size, strict=True)]
    if any(w < 1 or n % w for n, w in zip(planes, wanted, strict=True)):
        s.refuse(f"a pool of {planes[0]} x {planes[1]} to {wanted[0]} x {wanted[1]}, no divisors")
        return Tensor(None)
    window = (planes[0] // wanted[0], planes[1] // wanted[1])
    return pooled(s, x, window, window, (0, 0, 0, 0))


def plane_means(s: Scope, x: Tensor, axes: Sequence[int], keep: bool) -> Tensor:
    """axes: of samples with their own axis in front."""
    rank = len(s.shape(x)) + 1
    if rank != 4 or sorted(axis % rank for axis in axes) != [2, 3]:
        s.refuse(f"a mean over axes {list(axes)} of {rank}: only over planes")
        return Tensor(None)
    return to_size(s, x, (1, 1)) if keep else s.apply(modules.GlobalAvgPool(), x)


# ---- shapes ------------------------------------------------------------------------------------------------


def flattened(s: Scope, x: Tensor, first: int = 1, last: int = -1) -> Tensor:
    """Axes from first to last, those of samples with their own axis in front, as one."""
    rank = len(s.shape(x)) + 1
    first, last = first % rank, last % rank
    if first == last and first:
        return x
    if (first, last) != (1, rank - 1):
        s.refuse(f"axes {first} to {last} of {rank} as one: only all of a sample")
        return Tensor(None)
    return s.apply(modules.Flatten(), x)


def reshaped(s: Scope, x: Tensor, size: Sequence[object]) -> Tensor:
    """size: with that of the samples in front: BATCH, -1, 0 (as it is), or how many there are."""
    shape = s.shape(x)
    wanted = list(size[1:])
    if not size or any(not isinstance(n, (int, np.integer)) or isinstance(n, bool) for n in wanted):
        s.refuse("a shape that is not constant")
        return Tensor(None)
    if size[0] is not BATCH and size[0] == -1 and -1 in wanted:
        s.refuse("a shape with two axes to be found")
        return Tensor(None)
    if size[0] is not BATCH and size[0] not in (-1, 0, s.samples or 1):
        s.refuse(f"{size[0]} along the axis of the samples, expected -1 or the number of samples")
        return Tensor(None)
    wanted = [n if n != 0 else shape[k] if k < len(shape) else 0 for k, n in enumerate(wanted)]
    known = math.prod(int(n) for n in wanted if n != -1)  # type: ignore[call-overload]
    if wanted.count(-1) == 1 and known and math.prod(shape) % known == 0:
        wanted[wanted.index(-1)] = math.prod(shape) // known
    if tuple(wanted) == shape:
        return x
    if wanted == [math.prod(shape)]:
        return s.apply(modules.Flatten(), x)
    s.refuse(f"samples of shape {shape} as {tuple(wanted)}: they can be kept or flattened")
    return Tensor(None)


def joined(s: Scope, tensors: Sequence[object], axis: int) -> Tensor:
    """Channels one after the other."""
    found = [each for each in tensors if isinstance(each, Tensor)]
    if len(found) < len(tensors) or not found:
        s.refuse("a constant among the operands")
        return Tensor(None)
    if axis % (len(s.shape(found[0])) + 1) != 1:
        s.refuse(f"axis {axis}: only channels can be joined")
        return Tensor(None)
    return Tensor(concatenated(s.tracer, [each.number for each in found], s.place))


def _padding_fits(s: Scope, x: Tensor, pads: Quad) -> None:
    channels, height, width = _planes(s, x)
    fits(channels * (height + 2 * max(pads[0], pads[2])) * (width + 2 * max(pads[1], pads[3])))


def _planes(s: Scope, x: Tensor) -> tuple[int, int, int]:
    shape = s.shape(x)
    if len(shape) != 3:
        raise ParameterError(
            f"a tensor of shape {shape}, expected (channels, height, width)", {"shape": list(shape)}
        )
    return shape[0], shape[1], shape[2]
