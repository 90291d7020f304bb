"""`Sorting`: everything of a sorting program that is known before a number is encrypted, and the program."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crenel._crenel import Bootstrapper, Client, EvaluationKeys, Evaluator, Params
from crenel.ckks.recorder import Needs
from crenel.errors import ParameterError
from crenel.workloads.checked import whole
from crenel.workloads.masks import MaskStore
from crenel.workloads.recordings import Recordings, kept
from crenel.workloads.shared import Progress, Variant, check_variant, named, same_params
from crenel.workloads.sorting import radix as radices
from crenel.workloads.sorting import report as reports
from crenel.workloads.sorting import running, simulate
from crenel.workloads.sorting.clear import Noise
from crenel.workloads.sorting.comparator import comparator as stored
from crenel.workloads.sorting.report import Report
from crenel.workloads.sorting.setup import Setup
from crenel.workloads.sorting.simulate import Trace
from crenel.workloads.sorting.values import EncryptedValues, Scale, encrypt
from crenel.workloads.stages import Stages, unmeasured

Reals = NDArray[np.float64]
COMPARATOR, PAPER = "15,15,15,27", "15,15,27"


class Sorting(Setup):
    """Sort encrypted numbers. Public shapes only: nothing here depends on the numbers.

    Comparators, network, bootstraps and errors are derived in docs/theory/sign.md.

    Parameters
    ----------
    params : with levels for bootstraps
    count : numbers, 1 to N/2 with radix 2, to N/4 with radix 4; padded to a power of two
    comparator : degrees of the polynomials that stand for a comparison, see `comparator_names`
    radix : 2, or 4: two stages of the network to one comparison, half of the rounds. None: 4 where it fits
        and a simulated sort keeps 12 bits by it, or loses less than a bit to radix 2
    descending : largest first
    payload : columns of numbers that go where the sorted ones go
    variant : "paper": radix 2 and the comparator of 13 levels, 14 with its product, as Cheddar's
        two-way network (2026) may be read, which does not state its polynomials
    top : only so many of the largest (descending) or smallest numbers, in fewer rounds; None: all
    message_ratio : of the bootstraps; None: that of the smallest expected error

    Numbers closer than `report.resolution` are ties: they and their payload come out mixed, each a weighted
    mean of both. Raises ParameterError for counts that do not fit, unknown comparators, and parameters
    with too few levels, naming what would do.
    """

    def __init__(
        self,
        params: Params,
        count: int,
        *,
        comparator: str | None = None,
        radix: Literal[2, 4] | None = None,
        descending: bool = False,
        payload: int = 0,
        variant: Variant = "crenel",
        top: int | None = None,
        message_ratio: int | None = None,
    ) -> None:
        check_variant(variant)
        count, payload = whole("count", count), whole("payload", payload)
        top = None if top is None else whole("top", top)
        self.variant, paper = variant, variant == "paper"
        compares = stored(comparator or (PAPER if paper else COMPARATOR))
        if radix is None:
            radix = 2 if paper else radices.choose(params, count, compares, message_ratio)
        super().__init__(
            params, count, radix, compares, descending=descending, payload=payload, top=top,
            message_ratio=message_ratio,
        )  # fmt: skip

    def keys(self, client: Client, *, progress: Progress = None) -> EvaluationKeys:
        """The evaluation keys of this program, each for the levels that it is used at, and no others.
        `sorting_keys` has those of every call.

        Raises ParameterError where a simulated run leaves the polynomials' intervals: errors of these
        parameters, for vectors of so many slots, are too large for the comparator.
        """
        return self.keys_of(client, self.needs, progress)

    def keys_of(self, client: Client, needs: Needs, progress: Progress = None) -> EvaluationKeys:
        """`keys`, of these needs. Raises as `keys`."""
        same_params(client.context.params, self.params)
        if not self.report.converges:
            raise ParameterError(
                f"a simulated run of {self.count} numbers diverges: errors of parameters "
                f"{named(self.params)} are too large for comparator {self.comparator.name}, radix "
                f"{self.radix}. Take parameters of a larger scale, fewer numbers, or radix 2",
                {"comparator": self.comparator.name, "radix": self.radix, "count": self.count},
            )
        return needs.keys(client, progress)

    def encrypt(
        self,
        client: Client,
        values: ArrayLike,
        payload: Sequence[ArrayLike] = (),
        *,
        low: float = 0.0,
        high: float = 1.0,
        payload_low: float = 0.0,
        payload_high: float = 1.0,
    ) -> EncryptedValues:
        """Numbers within [low, high] and payload within [payload_low, payload_high]. The ranges go in
        the clear with what is encrypted: state them of what is known, not of the numbers.

        Raises ParameterError for numbers that are NaN, infinite or out of range, by place, and for
        lengths other than the plan's.
        """
        same_params(client.context.params, self.params)
        self._same_shapes(values, payload)
        scales = (Scale(low, high), *[Scale(payload_low, payload_high)] * self.payload)
        return encrypt(client, values, payload, scales, self.slots)

    def run(
        self,
        evaluator: Evaluator,
        x: EncryptedValues,
        *,
        boot: Bootstrapper | None = None,
        masks: MaskStore | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Progress = None,
        stages: Stages = unmeasured,
        on_round: Callable[[int, EncryptedValues], object] | None = None,
        graph: bool | Recordings = False,
    ) -> EncryptedValues:
        """Sort. The server's part: it needs `keys` and no secret.

        Parameters
        ----------
        x : of `encrypt`, for this program
        boot : a bootstrapper of `bootstrap`; default one is made, or shared with others of the context
        masks : encoded masks to use and to add to, for further runs; default those of this run alone
        checkpoint : a file that is written, whole, after every round. Where it is there, and of these
            ciphertexts, parameters and keys, the run goes on from it; the result is bit-identical
        progress : as elsewhere (crenel.progress): counts rounds
        stages : who times the parts, of which a recording hides those inside
        on_round : called with (rounds done, columns) after every round
        graph : record the parts of rounds and replay them where they come again: fewer launches on a GPU, the
            same bits. `Recordings` are kept for further runs with the same evaluator, and pay there

        Raises StateError for numbers of another program, secret key or checkpoint; KeyMissingError naming
        the keys. What stops it, as Ctrl-C, leaves the checkpoint whole.
        """
        return running.run(
            self, evaluator, x, boot, masks, checkpoint, progress, stages, on_round, kept(graph)
        )

    def decrypt(self, client: Client, out: EncryptedValues) -> Reals:
        """The sorted numbers: `EncryptedValues.decrypt`, which raises DivergenceError for results that mean
        nothing. Payload: `EncryptedValues.decrypt_payload`."""
        return out.decrypt(client)

    def simulate(
        self,
        values: ArrayLike,
        payload: Sequence[ArrayLike] = (),
        *,
        noise: Noise | None = None,
        low: float = 0.0,
        high: float = 1.0,
        payload_low: float = 0.0,
        payload_high: float = 1.0,
    ) -> Trace:
        """The same program in the clear: rounds, polynomials, bootstraps and their errors, operation by
        operation.

        Parameters
        ----------
        values, payload : vectors of `count` numbers each
        noise : `noise()`, or another; default none, so that only the comparators' errors are left

        Other arguments and errors are those of `encrypt`.
        """
        self._same_shapes(values, payload)
        scales = [Scale(low, high), *[Scale(payload_low, payload_high)] * self.payload]
        return simulate.simulate(self, values, payload, scales, noise)

    @cached_property
    def report(self) -> Report:
        """Costs and expected errors, some of them from simulated runs of uniform numbers."""
        return reports.report(self)

    def describe(self) -> str:
        """The program in words, before anything runs."""
        return reports.describe(self, self.report, self.variant)

    def __repr__(self) -> str:
        return f"<Sorting of {self.count} numbers, radix {self.radix}, comparator {self.comparator.name}>"

    def _same_shapes(self, values: ArrayLike, payload: Sequence[ArrayLike]) -> None:
        if len(payload) != self.payload:
            raise ParameterError(
                f"{len(payload)} payload columns for a program of {self.payload}",
                {"payload": len(payload), "expected": self.payload},
            )
        for place, column in enumerate([values, *payload]):
            if np.shape(column) != (self.count,):
                what = f"payload {place - 1}" if place else "values"
                raise ParameterError(
                    f"{what} of shape {np.shape(column)} for a program of {self.count}",
                    {"what": what, "expected": self.count},
                )
