"""What decides a sort: network, comparator, slots and levels, all of them public."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from crenel._crenel import BootstrapOptions, Params
from crenel.ckks.recorder import Needs
from crenel.errors import ParameterError
from crenel.workloads.shared import named
from crenel.workloads.sorting import circuit, levels, network
from crenel.workloads.sorting.clear import Noise
from crenel.workloads.sorting.comparator import Comparator
from crenel.workloads.sorting.demand import Demand, demand
from crenel.workloads.sorting.values import PADDING, padded


class Setup:
    """The part of `Sorting` that needs neither client nor server; its arguments are checked here."""

    def __init__(
        self,
        params: Params,
        count: int,
        radix: Literal[2, 4],
        comparator: Comparator,
        *,
        descending: bool = False,
        payload: int = 0,
        top: int | None = None,
        message_ratio: int | None = None,
    ) -> None:
        """As of `Sorting`, with radix and comparator chosen."""
        if radix not in (2, 4):
            raise ParameterError(f"radix {radix}, expected 2 or 4", {"radix": radix})
        if payload < 0:
            raise ParameterError(f"{payload} payload columns, expected 0 or more", {"payload": payload})
        if top is not None and not 1 <= top <= count:
            raise ParameterError(f"top {top} of {count} numbers", {"top": top, "count": count})
        self.params, self.count, self.descending, self.payload = params, count, descending, payload
        self.radix: Literal[2, 4] = radix
        self.size, self.top = padded(count), top
        self.slots = self.size if radix == 2 else 2 * self.size
        if self.slots > params.slots:
            raise ParameterError(
                f"{count} numbers, radix {radix}, take {self.slots} slots and parameters {named(params)} "
                f"have {params.slots}",
                {"count": count, "needed": self.slots, "slots": params.slots},
            )
        self.refresh = levels.refresh(params, self.slots, message_ratio)
        self.comparator = comparator.against(self.noise().operation)
        deepest = max([1, *(f.depth for f in comparator.factors)])
        needed = max(deepest, circuit.TAIL[radix])
        if self.refresh.output_level < needed:
            raise ParameterError(
                f"comparator {comparator.name} needs {needed} levels between bootstraps, parameters "
                f"{named(params)} have {self.refresh.output_level}",
                {"needed": needed, "levels": self.refresh.output_level},
            )

    @cached_property
    def rounds(self) -> list[network.Round]:
        """The network."""
        if self.top is None:
            return network.sort(self.size, self.radix, self.descending)
        return network.top(self.size, self.top, self.radix, self.descending)

    @property
    def bootstrap(self) -> BootstrapOptions:
        """Options of the bootstraps."""
        return self.refresh.options

    @cached_property
    def demand(self) -> Demand:
        """Keys, bootstraps and recordings of a run."""
        return demand(
            self.params, self.rounds, self.comparator, self.bootstrap, self.refresh.output_level, self.slots,
            1 + self.payload,
        )  # fmt: skip

    @property
    def needs(self) -> Needs:
        """What a server needs of keys to run it. ``(plan.needs | others).keys(client)`` makes one set for
        several programs."""
        return self.demand.needs

    @property
    def rotations(self) -> dict[int, int]:
        """Steps that the rounds rotate by, ascending, and the highest level of each; a bootstrap has its
        own."""
        return dict(sorted(self.needs.rotation_levels.items()))

    def key_bytes(self) -> int:
        """Bytes on the server's device of `keys`."""
        return self.needs.key_bytes(self.params)

    def noise(self, seed: int = 0) -> Noise:
        """The errors that these parameters have, for `simulate`."""
        return levels.noise(self.params, self.slots, self.refresh.message_ratio, seed)

    @property
    def tolerance(self) -> float:
        """By how much neighbours in a result may be out of order, of slots: far more than errors of a
        run that worked, and far less than where one did not."""
        errors = self.comparator.exchange_error + self.noise().bootstrap * len(self.rounds) ** 0.5
        return float(min(0.25, 64 * errors))

    @property
    def last(self) -> float:
        """What padding holds: it is to come last."""
        return -PADDING if self.descending else PADDING

    @property
    def places(self) -> range:
        """Slots of the results."""
        return range(self.count if self.top is None else self.top)

    @property
    def program(self) -> str:
        """All that decides what a round computes, as checkpoints name it."""
        return (
            f"{self.count} {self.radix} {self.comparator.name} {self.descending} {self.payload} {self.top} "
            f"{self.refresh}"
        )
