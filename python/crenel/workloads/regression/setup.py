"""What decides a training: shapes, constants and levels, all of them public."""

from __future__ import annotations

import json
from typing import Literal

import numpy as np

from crenel._crenel import BootstrapOptions, Context, Params, sum_slots_rotations
from crenel.ckks.recorder import Needs
from crenel.errors import ParameterError
from crenel.workloads.checked import seed_of, whole
from crenel.workloads.checkpoint import fingerprint
from crenel.workloads.regression import schedule
from crenel.workloads.regression.layout import Layout, power_of_two
from crenel.workloads.regression.noise import Noise, expected
from crenel.workloads.regression.plan import Plan
from crenel.workloads.regression.schedule import Factors, Order
from crenel.workloads.regression.sigmoid import HELR, Sigmoid
from crenel.workloads.shared import Variant, check_variant

MESSAGE_RATIO = 9  # a pattern of few numbers that repeats: docs/guide/bootstrap_precision.md, "Choosing"


class Setup:
    """The part of `LogisticRegression` that needs neither client nor server."""

    def __init__(
        self,
        params: Params,
        *,
        features: int,
        batch: int = 1024,
        rate: float = 1.0,
        sigmoid: Sigmoid = HELR,
        order: Order = "cyclic",
        seed: int = 0,
        variant: Variant = "crenel",
        weight_range: float = 8.0,
        feature_range: float = 1.0,
    ) -> None:
        """
        Parameters
        ----------
        params : with bootstrapping for any number of iterations; leveled ones of depth 2 + 4 (k - 1) for k
        features : columns of the table; an intercept is added
        batch : rows of a block; each iteration sees one block
        rate : of the mean gradient over a block; a last block of fewer rows steps less far
        sigmoid : the polynomial, HELR's by default, or `least_squares(interval)`
        order : of blocks, in turn or drawn at random with the public `seed`
        variant : 'crenel' packs two features to a slot, 'paper' one, and refreshes v + i x, as HELR does
        weight_range : largest |entry| of the state, weights times up to 2: a bootstrap's range
        feature_range : largest |feature|; others are refused at encryption

        Raises ParameterError for values out of range and for parameters with too few levels or slots.
        """
        for name, value in (("rate", rate), ("weight_range", weight_range), ("feature_range", feature_range)):
            if not 0 < value < np.inf:
                raise ParameterError(f"{name} must be positive and finite, got {value}", {name: value})
        check_variant(variant)
        features, batch, seed = whole("features", features), whole("batch", batch), seed_of(seed)
        self.params, self.sigmoid, self.rate = params, sigmoid, float(rate)
        self.order: Order = order
        self.seed, self.variant = seed, variant
        self.weight_range, self.feature_range = float(weight_range), float(feature_range)
        self.layout = Layout.fitting(params.slots, features, batch, 2 if variant == "crenel" else 1)
        self.blocks_seen(1, 1)
        self.plan = Plan.of(params, self._highest_output())
        self.bootstrap = None if self.plan.output is None else self._options(self.plan.output)

    def factors(self, iterations: int) -> list[Factors]:
        """Factors of each iteration."""
        return schedule.factors(self.rate, self.layout.batch, iterations)

    def blocks_seen(self, blocks: int, iterations: int) -> list[int]:
        """Which of so many blocks each iteration sees."""
        return schedule.blocks_seen(self.order, self.seed, blocks, iterations)

    @property
    def fingerprint(self) -> str:
        """Of everything that decides what an iteration computes, the levels included."""
        m = self
        said = [
            m.layout.features, m.layout.batch, m.rate, m.sigmoid.linear, m.sigmoid.cubic, m.order, m.seed,
            m.variant, m.weight_range, m.plan.fresh, m.plan.start, m.plan.output, repr(m.bootstrap),
        ]  # fmt: skip
        return fingerprint(json.dumps(said))

    @property
    def rotations(self) -> dict[int, int]:
        """Rotations of an iteration and the highest level of each; a refresh has its own."""
        shape, highest = self.layout, self.plan.highest
        levels: dict[int, int] = {}
        for count, stride, level in (
            (shape.columns, 1, highest - 1),
            (shape.columns, -1, highest - 2),
            (shape.rows, shape.columns, max(self.plan.start, highest - 4)),
        ):
            for step in sum_slots_rotations(count, stride):
                levels[step] = max(levels.get(step, 0), level)
        return levels

    @property
    def key_level(self) -> int:
        """Highest level at which labels come into a table: that of the keys that are no rotations."""
        return max(self.plan.start + 1, self.plan.highest) + 1

    @property
    def needs(self) -> Needs:
        """What a server needs of keys to train and to predict. ``(model.needs | others).keys(client)`` makes
        one set for several programs."""
        return Needs(
            self.rotations,
            self.key_level if self.layout.paired else None,
            self.key_level,
            () if self.bootstrap is None else (self.bootstrap,),
            self.plan.fresh,
        )

    def key_bytes(self) -> int:
        """Bytes on the server's device of `keys`."""
        return self.needs.key_bytes(self.params)

    def noise(self) -> Noise:
        """Errors of the operations by the parameters' error model: for `simulate` and `expected_errors`."""
        return Noise.of(self.params, self.layout.slots, self._refresh_error())

    def expected_errors(self, iterations: int) -> list[float]:
        """Expected root mean square of the weights' errors after each iteration, against `simulate`."""
        levels, refreshed = [], []
        for part in self.plan.segments(iterations):
            for k in range(part.count):
                levels.append(part.start - 4 * (k if part.first == 0 else k + 1))
                refreshed.append(part.refreshed and k == 0)
        factors = self.factors(iterations)
        return expected(
            self.layout, self.sigmoid, self.weight_range, self.noise(), factors, levels, refreshed
        )

    def _options(self, output: int) -> BootstrapOptions:
        vectors, columns = 2 * self.layout.ciphertexts, self.layout.columns
        message: Literal["complex", "pair"] = "complex" if self.layout.paired else "pair"
        places = vectors if self.layout.paired else vectors // 2
        pack = min(power_of_two(places), self.params.slots // columns)
        return BootstrapOptions(
            slots=columns, pack=pack, message_ratio=MESSAGE_RATIO, message=message, target_level=output
        )

    def _highest_output(self) -> int | None:
        """Highest level that a refresh can reach; None where these parameters have no bootstrap."""
        top = self.params.normal_top_level
        if self.params.max_level == top:
            return None
        for level in range(top, 0, -1):
            try:
                self._options(level).rotations(self.params)
            except ParameterError:
                continue
            return level
        return None

    def _refresh_error(self) -> float:
        """Expected root mean square error of a refreshed number; 0 without refreshes."""
        if self.bootstrap is None:
            return 0.0
        # Its numbers are the same on every device, and the CPU is always there.
        boot = Context(self.params, "cpu").bootstrapper(options=self.bootstrap, progress=False)
        return boot.report().expected_rms
