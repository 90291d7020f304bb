"""What operations cost: tables of measured times, and what they say of levels between the measured ones.

Times depend on the ring, the number of special primes, limbs and batch, so that one table serves every
parameter set of a shape; those of bootstraps are of one set.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import TypeAlias, cast

from crenel.ckks import Params
from crenel.errors import FieldValue, ParameterError, SerializationError, UnsupportedError

Document: TypeAlias = Mapping[str, object]
_RowValues: TypeAlias = tuple[str, int, int, float, str, str]
_BootValues: TypeAlias = tuple[str, int, int, int, int, float, str, str]
KIND, FORMAT = "crenel-costs", 2
MESSAGES = ("complex", "real", "pair")  # of BootstrapOptions

OPERATIONS: Mapping[str, str] = {
    "add": "sum of two ciphertexts",
    "plain_product": "product with a plaintext, without rescale",
    "product": "product of two ciphertexts with relinearisation, without rescale",
    "product_rescale": "product of two ciphertexts with relinearisation and rescale",
    "rotation": "one rotation by itself",
    "conjugation": "one conjugation",
    "hoisted_rotation": "one more rotation in a sum of rotations of one ciphertext",
    "rescale": "rescale",
    "adjust_level": "to the next lower level: product with a constant and rescale",
    "transform": "linear transform by diagonals but for its steps and diagonals: raising, dividing, rescale",
    "baby_step": "one more rotation of the vector in a linear transform",
    "giant_step": "one more rotation of a sum in a linear transform",
    "diagonal": "product with one more full diagonal in a linear transform",
}
"""Operations that a table may have, and what their times are of."""


@dataclass(frozen=True)
class Row:
    """A time in microseconds. `source` names a measurement, `how` how it was derived; empty:
    it was timed itself."""

    operation: str
    limbs: int
    batch: int
    us: float
    source: str
    how: str = ""


@dataclass(frozen=True)
class BootRow:
    """Time of a bootstrap with hoisted keys, in microseconds: of one batch of ciphertexts with so many slots,
    from level `input` to `output`. `message` is that of its BootstrapOptions: "complex", "real" or "pair"."""

    params_id: str
    slots: int
    input: int
    output: int
    batch: int
    us: float
    source: str
    message: str


@dataclass(frozen=True)
class Quote:
    """A time in microseconds and where it comes from: the rows used, what was done with them."""

    us: float
    how: str


@dataclass(frozen=True)
class CostModel:
    """Times of operations on one device, for rings of one degree and one number of special primes.

    A time at limbs that no row has is interpolated linearly between the two nearest rows of its operation and
    batch. What lies outside raises UnsupportedError with `operation`, `limbs`, `batch` and `measured`, the
    limbs that are there; `with_stand_ins` has what to take instead.

    Attributes
    ----------
    device : as its description says
    sources : of each source named by rows: file, date, command and the like
    stand_ins : see `with_stand_ins`
    """

    device: str
    log_n: int
    alpha: int
    rows: tuple[Row, ...]
    bootstraps: tuple[BootRow, ...] = ()
    sources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    stand_ins: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if row.operation not in OPERATIONS or row.limbs < 1 or row.batch < 1 or not 0 <= row.us < 1e12:
                raise ParameterError(f"no row of a cost table: {row}", {"operation": row.operation})
        for boot in self.bootstraps:
            sound = min(boot.slots, boot.batch) >= 1 and min(boot.input, boot.output) >= 0
            if not sound or boot.message not in MESSAGES or not 0 <= boot.us < 1e12:
                raise ParameterError(f"no row of a cost table: {boot}", {"operation": "bootstrap"})
        keys = [(row.operation, row.limbs, row.batch) for row in self.rows]
        if twice := next((key for key in keys if keys.count(key) > 1), None):
            raise ParameterError(f"two rows of {twice[0]} at {twice[1]} limbs, batch {twice[2]}")

    def with_stand_ins(self) -> CostModel:
        """The same, where absent rows are stood in for by others that should not be faster:

        * fewer limbs than measured: the least limbs that were;
        * a batch that was not measured: calls of the largest measured one that divides it;
        * bootstraps to fewer slots or a lower level: the next that was measured with more of both, for a
          vector of few slots is one of many that repeats;
        * bootstraps of real messages and of pairs: those of complex ones, and one conjugation at the level
          where they end, which is what they do more.

        Quotes say so. More limbs than measured, and operations without any row, raise still.
        """
        return replace(self, stand_ins=True)

    def quote(self, operation: str, params: Params, level: int, *, batch: int = 1) -> Quote:
        """Time of an operation whose inputs are at a level. Raises ParameterError for names that
        `OPERATIONS` does not have, levels out of range and parameters of another shape; UnsupportedError for
        absent rows."""
        self._check(params, level)
        main, terminal = params.levels[level]
        return self.at_limbs(operation, main + terminal, batch=batch)

    def at_limbs(self, operation: str, limbs: int, *, batch: int = 1) -> Quote:
        """As `quote`, by limbs."""
        if operation not in OPERATIONS:
            raise ParameterError(
                f"operation {operation!r}, expected one of {', '.join(OPERATIONS)}", {"operation": operation}
            )
        rows = sorted(
            (r for r in self.rows if (r.operation, r.batch) == (operation, batch)), key=lambda r: r.limbs
        )
        below = [row for row in rows if row.limbs <= limbs]
        above = [row for row in rows if row.limbs >= limbs]
        if below and above:
            return _between(below[-1], above[0], limbs)
        if self.stand_ins and above:
            return Quote(above[0].us, f"{_named(above[0])}, for {limbs} limbs")
        if self.stand_ins and batch > 1:
            parts = max(self._measured_parts(operation, limbs, batch), default=1)
            one = self.at_limbs(operation, limbs, batch=parts)
            return Quote(batch // parts * one.us, f"{batch // parts} times {one.how}")
        raise self._absent(operation, limbs, batch, [row.limbs for row in rows])

    def _measured_parts(self, operation: str, limbs: int, batch: int) -> set[int]:
        """Batches of more than one that divide another and were measured up to these limbs."""
        rows = [r for r in self.rows if r.operation == operation and r.limbs >= limbs]
        return {r.batch for r in rows if 1 < r.batch < batch and batch % r.batch == 0}

    def us(self, operation: str, params: Params, level: int, *, batch: int = 1) -> float:
        """Microseconds of `quote`."""
        return self.quote(operation, params, level, batch=batch).us

    def bootstrap(
        self, params: Params, slots: int, output: int, *, batch: int = 1, message: str = "real"
    ) -> Quote:
        """Time of a bootstrap of ciphertexts with so many slots to level `output`. Raises UnsupportedError
        for absent rows, with `slots`, `output`, `batch` and, as `measured`, the slots that are there.

        message : as BootstrapOptions has it; programs of crenel.nn bootstrap "real" ones
        """
        mine = [row for row in self.bootstraps if row.params_id == params.id]
        wanted = slots, output, batch, message
        exact = [row for row in mine if (row.slots, row.output, row.batch, row.message) == wanted]
        if exact:
            return Quote(exact[0].us, _boot_named(exact[0]))
        kinds = {message, "complex"}
        serving = [
            r for r in mine
            if r.slots >= slots and r.output >= output and r.batch in (1, batch) and r.message in kinds
        ]  # fmt: skip
        if self.stand_ins and serving:
            quotes = [(self._standing_in(row, params, batch, message), row.slots) for row in serving]
            best = min(quotes, key=lambda found: (found[0].us, found[1]))[0]
            return Quote(best.us, f"{best.how}, for {slots} slots to level {output}")
        raise UnsupportedError(
            f"no time of a bootstrap of {params.name or params.id} on {self.device}: {slots} slots to level "
            f"{output}, batch {batch}, message {message!r}; measured: "
            + (", ".join(_boot_named(row) for row in mine) or "none of these parameters"),
            {"operation": "bootstrap", "slots": slots, "output": output, "batch": batch,
             "measured": sorted({row.slots for row in mine})},
        )  # fmt: skip

    def targets(self, params: Params) -> tuple[int, ...]:
        """Levels at which bootstraps of these parameters end of which there are times, the highest first."""
        return tuple(sorted({r.output for r in self.bootstraps if r.params_id == params.id}, reverse=True))

    def _standing_in(self, row: BootRow, params: Params, batch: int, message: str) -> Quote:
        """Of a batch and a message, by a row of the batch or of one ciphertext, perhaps of complex ones."""
        times = batch // row.batch
        said = _boot_named(row) if times == 1 else f"{times} times {_boot_named(row)}"
        if row.message == message:
            return Quote(row.us * times, said)
        real = self.quote("conjugation", params, row.output, batch=batch)
        return Quote(row.us * times + real.us, f"{said}, and {real.how}")

    def transform(
        self, params: Params, level: int, *, babies: int, giants: int, diagonals: float, batch: int = 1
    ) -> Quote:
        """Time of a linear transform whose inputs are at a level >= 1.

        babies, giants : rotations, the one by 0 included, as LinearTransform.baby_steps and giant_steps
        diagonals : in full plaintexts: one of period p counts p / (N/2)
        """
        if babies < 1 or giants < 1 or diagonals < 0 or level < 1:
            raise ParameterError(
                f"a transform at level {level} with {babies} baby steps, {giants} giant steps, {diagonals} "
                "diagonals: expected at least 1, 1, 1 and 0",
                {"level": level, "babies": babies, "giants": giants},
            )
        counts = {"transform": 1, "baby_step": babies - 1, "giant_step": giants - 1, "diagonal": diagonals}
        quotes = {op: self.quote(op, params, level, batch=batch) for op in counts}
        total = sum(count * quotes[op].us for op, count in counts.items())
        return Quote(total, "; ".join(f"{count:g} {op}: {quotes[op].how}" for op, count in counts.items()))

    def document(self) -> dict[str, object]:
        """The model as JSON's types, for `of_document`."""
        return {
            "kind": KIND,
            "format": FORMAT,
            "device": self.device,
            "log_n": self.log_n,
            "alpha": self.alpha,
            "sources": {name: dict(said) for name, said in self.sources.items()},
            "rows": [[*vars(row).values()] for row in self.rows],
            "bootstraps": [[*vars(row).values()] for row in self.bootstraps],
        }

    @staticmethod
    def of_document(document: Document) -> CostModel:
        """The model of a `document`. Raises SerializationError for what is none."""
        if document.get("kind") != KIND or document.get("format") != FORMAT:
            raise SerializationError(
                f"expected kind {KIND!r}, format {FORMAT}, got {document.get('kind')!r}, "
                f"{document.get('format')!r}"
            )
        try:
            rows = [Row(*row) for row in cast(Iterable[_RowValues], document["rows"])]
            boots = [BootRow(*row) for row in cast(Iterable[_BootValues], document["bootstraps"])]
            return CostModel(
                str(document["device"]),
                int(cast(int, document["log_n"])),
                int(cast(int, document["alpha"])),
                tuple(rows),
                tuple(boots),
                cast(Mapping[str, Mapping[str, str]], document["sources"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SerializationError(f"no table of costs: {type(error).__name__}: {error}") from None

    @staticmethod
    def packaged(params: Params, device: str) -> CostModel:
        """The table of a device that comes with Crenel, for the shape of these parameters.

        device : how its description begins, for example "NVIDIA H200"

        Raises UnsupportedError naming the tables there are.
        """
        tables = [CostModel.of_document(table) for table in packaged_documents()]
        for table in tables:
            if table.device.startswith(device) and (table.log_n, table.alpha) == (params.log_n, params.alpha):
                return table
        there = ", ".join(f"{t.device} at N = 2^{t.log_n}, alpha {t.alpha}" for t in tables)
        raise UnsupportedError(
            f"no table of costs for {device} at N = 2^{params.log_n}, alpha {params.alpha}; there are: "
            f"{there}. Measure this machine: crenel.nn.measure.measure(context)",
            {"device": device, "log_n": params.log_n, "alpha": params.alpha},
        )

    @staticmethod
    def of_device(params: Params, description: str) -> CostModel | None:
        """The packaged table of a device by its own description, with stand-ins; None: there is none.

        description : as ``context.device.info.description``
        """
        for table in map(CostModel.of_document, packaged_documents()):
            shape = (table.log_n, table.alpha)
            if description.startswith(table.device) and shape == (params.log_n, params.alpha):
                return table.with_stand_ins()
        return None

    def _check(self, params: Params, level: int) -> None:
        if (params.log_n, params.alpha) != (self.log_n, self.alpha):
            raise ParameterError(
                f"a table of N = 2^{self.log_n}, alpha {self.alpha} says nothing of N = 2^{params.log_n}, "
                f"alpha {params.alpha}",
                {"log_n": params.log_n, "alpha": params.alpha},
            )
        if not 0 <= level <= params.max_level:
            raise ParameterError(f"level {level}, expected 0 to {params.max_level}", {"level": level})

    def _absent(self, operation: str, limbs: int, batch: int, measured: list[int]) -> UnsupportedError:
        fields: dict[str, FieldValue] = {
            "operation": operation, "limbs": limbs, "batch": batch, "measured": measured
        }  # fmt: skip
        there = f"at {', '.join(map(str, measured))} limbs" if measured else "nowhere"
        return UnsupportedError(
            f"no time of {operation} at {limbs} limbs, batch {batch}, on {self.device}: measured {there}",
            fields,
        )


def packaged_documents() -> list[Document]:
    """The tables of costs.json, which tools/gen_costs.py renders from bench/results."""
    text = resources.files("crenel.nn").joinpath("costs.json").read_text(encoding="utf-8")
    return cast(list[Document], json.loads(text)["tables"])


def _named(row: Row) -> str:
    derived = f", {row.how}" if row.how else ""
    return f"{row.operation} at {row.limbs} limbs ({row.source}{derived})"


def _boot_named(row: BootRow) -> str:
    kind = f"{row.slots} slots, {row.message}"
    return f"bootstrap of {kind}, to level {row.output}, batch {row.batch} ({row.source})"


def _between(low: Row, high: Row, limbs: int) -> Quote:
    if low.limbs == high.limbs:
        return Quote(low.us, _named(low))
    share = (limbs - low.limbs) / (high.limbs - low.limbs)
    return Quote(
        low.us + share * (high.us - low.us), f"{limbs} limbs, between {_named(low)} and {_named(high)}"
    )
