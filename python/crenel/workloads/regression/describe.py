"""A training in words, before anything runs."""

from __future__ import annotations

import numpy as np

from crenel._crenel import Params
from crenel.workloads.regression import circuit
from crenel.workloads.regression.clear import Clear, ClearOperations, encode
from crenel.workloads.regression.setup import Setup
from crenel.workloads.shared import MIB, columns
from crenel.workloads.stages import unmeasured


def operations(model: Setup) -> dict[str, int]:
    """Operations on single vectors of one iteration, without refresh and data's preparation."""
    layout, plan = model.layout, model.plan
    ops = ClearOperations(plan.output, layout.columns)
    level = max(plan.highest, 4)
    zeros = np.zeros((layout.ciphertexts, layout.slots), np.complex128)
    vectors = Clear(zeros, level)
    by = circuit.constants(layout, model.sigmoid, model.weight_range, model.factors(2)[1], level, encode)
    state = circuit.State(vectors, vectors, None)
    circuit.iterate(ops, layout, model.sigmoid, state, circuit.Block(vectors, vectors), by, unmeasured)
    return ops.counts


def vector_bytes(params: Params, level: int) -> int:
    """Bytes of one encrypted vector at a level."""
    return 2 * sum(params.levels[level]) * params.ring_dim * 4


def describe(model: Setup, iterations: int) -> str:
    """The text of LogisticRegression.describe."""
    layout, plan, params = model.layout, model.plan, model.params
    segments = plan.segments(iterations)
    refreshes = sum(part.refreshed for part in segments)
    lengths = [str(part.count) for part in segments]
    errors = model.expected_errors(iterations)
    block = layout.ciphertexts * vector_bytes(params, plan.fresh)
    kept = layout.ciphertexts * (
        vector_bytes(params, max(plan.start + 1, plan.highest))
        + (vector_bytes(params, plan.highest) if layout.paired else 0)
    )
    file = 2 * layout.ciphertexts * vector_bytes(params, segments[-1].end)
    counted = ", ".join(f"{count} {what}" for what, count in operations(model).items())
    after = "no bootstraps" if plan.output is None else f"{plan.output} after a refresh"
    lines = [
        ("training", f"{iterations} iterations of {layout.batch} rows, {layout.features} features and an "
         f"intercept, rate {model.rate:g}, blocks {model.order}, variant {model.variant}"),
        ("parameters", f"{params.name or 'unnamed'}, {'INSECURE' if params.insecure else 'secure'}"),
        ("packing", f"{layout.rows} rows x {layout.columns} columns of slots, {layout.width} features to a "
         f"slot, {layout.ciphertexts} vectors to a block"),
        ("sigmoid", f"0.5 {model.sigmoid.linear:+.6g} x {model.sigmoid.cubic:+.6g} x^3 for "
         f"|x| <= {model.sigmoid.interval:g}, off by at most {model.sigmoid.error:.3f}; diverges "
         f"beyond {model.sigmoid.limit:.1f}"),
        ("ranges", f"|feature| <= {model.feature_range:g}, |state| <= {model.weight_range:g}"),
        ("levels", f"fresh {plan.fresh}, {plan.start} after the first iteration, {after}; 4 an iteration"),
        ("refreshes", f"{refreshes} (iterations between them: {', '.join(lengths)}), each of "
         f"{2 * layout.ciphertexts} vectors of {layout.columns} slots"),
        ("operations", f"{counted}; an iteration, single vectors"),
        ("keys", f"{model.key_bytes() / MIB:.1f} MiB on the device, {len(model.rotations)} rotations besides "
         "a bootstrap's"),
        ("data", f"{block / MIB:.1f} MiB a block, and {kept / MIB:.1f} MiB that the server makes of it "
         "while iterations to come see it"),
        ("checkpoint", f"{file / MIB:.1f} MiB at the end, and the last inner products"),
        ("expected error", f"{errors[-1]:.2g} rms of a weight (2^{np.log2(errors[-1]):.1f})"),
    ]  # fmt: skip
    return columns(lines, 16)
