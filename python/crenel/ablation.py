"""What each optimisation is worth: ladders of them, after two papers and in our own order.

Every rung is a set of ``crenel.Optimisations`` on one device, with the same keys and inputs; then come the
numbers of launches (``crenel.tuning``) that are optimisations, each at its plain value. On a GPU or a
CPU it is timed and its result's bits are compared with those of all optimisations; ``cuda:dry`` states what
it would move and compute (``crenel.analyze``). What changes the algorithm of a bootstrap is
``crenel.ablation_algorithm``'s. ``crenel bench ablation`` is the command.
"""

from __future__ import annotations

import hashlib
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

import crenel
from crenel import analyze, ckks
from crenel._crenel import Optimisations
from crenel.tuning import set_tuning, tunables, tuning_of

ALL = tuple(Optimisations.meanings())
IN_A_ROW = 8  # key switches of a call: a replayed graph copies its inputs and results, once a call
INEXACT = frozenset({"merged_rescale"})  # without these results may differ, within their errors


@dataclass(frozen=True)
class Fusion:
    """A fusion as Cheddar names it, and where it is here."""

    name: str
    what: str
    switches: tuple[str, ...] = ()
    note: str = ""
    """Why there is no switch, or what of it one cannot turn off."""


FUSIONS = (
    Fusion(
        "Seq.1", "constant of a base conversion in the inverse transform before it", ("mod_up", "division"),
        "compositions multiply in the conversion itself, so the product is never a launch of its own",
    ),
    Fusion(
        "Seq.2", "conversion to Montgomery form in neighbouring kernels", (),
        "no switch: words at rest are ordinary residues, and constants are prepared with their factor",
    ),
    Fusion(
        "Seq.3", "products of rescale and ModDown in the last transform pass",
        ("division", "division_addend"),
    ),
    Fusion("Par.1", "products with a key in one kernel", ("key_multiply",)),
    Fusion("Par.2", "products with plaintexts in one kernel", ("plain_sums",)),
    Fusion(
        "Par.3", "independent polynomials in one kernel", ("tensor", "tensor_square"),
        "element-wise kernels always take all polynomials of their operands",
    ),
    Fusion(
        "Par.4", "sums of multiples and of rotations in one kernel",
        ("linear_combination", "automorphism_add"),
    ),
    Fusion("Par.5", "a linear transform's products and rotations in one kernel", ("hoisted_sums",)),
)  # fmt: skip


@dataclass(frozen=True)
class Rung:
    """What is added to the rung before."""

    name: str
    adds: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True)
class Ladder:
    """Rungs from few optimisations to all that the ladder has."""

    name: str
    title: str
    rungs: tuple[Rung, ...]
    absent: tuple[tuple[str, str], ...] = ()
    """Steps of the paper that have no switch here, and why."""

    def configurations(self) -> Iterator[tuple[Rung, Optimisations]]:
        """Every rung with what is on at it."""
        on: set[str] = set()
        for rung in self.rungs:
            on |= set(rung.adds)
            yield rung, only(on)


_FIRST = ("tensor", "tensor_square", "plain_sums", "key_multiply", "mod_up", "hoisting", "merged_rescale")
_SEQUENTIAL = ("division", "division_addend")
_PARALLEL = ("automorphism_add", "linear_combination", "hoisted_sums")
_CHEDDAR = (*_FIRST, "held_sources", *_SEQUENTIAL, *_PARALLEL)
_WITH_MPC = (
    "key_switch, lift, rotated_rows, product_rows and divided_rows work on all digits at once: they "
    "tell with multi_polynomial only"
)
_FP64 = (
    "FP64 units in base conversion",
    "computed, not built: a product of 31-bit words summed over 16 is exact in 53 bits only with one "
    "factor in two pieces, so the 64 multiply-adds a clock of an H200's multiprocessor are 32 products "
    "where its matrix units make 256 (16 products of bytes each). Of the 5.3e9 products of a bootstrap of"
    " boot40 a ninth fits there at the same time: 9 us off the matrix units, for 35 us of issue slots, "
    "which there are too few of",
)
_SUBRING = (
    "subring encapsulation",
    "computed, not built: a secret of weight 32 in the subring of degree 2^15 frees one of the 16 "
    "rotations of CoeffToSlot's first factor, which after OverModRaise is one product with a key of 29 "
    "MiB: 7 us at the memory's rate; degree 2^14 allows a q0 P' of 77 bits, where 112 are needed",
)
_PIPELINING = ("complementary pipelining", "no switch: nothing of it is here; launch_overlap is the nearest")

CHEDDAR = Ladder(
    "cheddar",
    "Cheddar, Table 8 and Fig. 8",
    (
        Rung(
            "Base",
            _FIRST,
            "Seq.1, Par.1 to Par.3; digits and components one by one, so Seq.1 of ModUp tells with "
            "multi_polynomial only",
        ),
        Rung("+KerOpt", ("held_sources",)),
        Rung("+SeqFuse", _SEQUENTIAL, "Seq.3"),
        Rung("+ParFuse", _PARALLEL, "Par.4, Par.5"),
    ),
    (
        ("signed Montgomery reduction", "no switch: kernels have one form"),
        ("rational rescaling", "no switch: a property of the parameter set"),
        (
            "extended on-the-fly twiddles",
            "in part, no switch: of the last four stages of rows a thread reads four of fifteen twiddles "
            "from tables and makes eleven by products",
        ),
        ("Seq.2", FUSIONS[1].note),
    ),
)
_THEODOSIAN = (
    Rung("Cheddar", _CHEDDAR, "the last rung of that ladder"),
    Rung(
        "+Fusion",
        ("key_switch", "lift", "doubling", "rotated_rows", "product_rows", "divided_rows"),
        _WITH_MPC,
    ),
    Rung("+BConv opt.", ("conversion_shape", "convert_columns")),
    Rung("+CUDA Graph", ("graphs",)),
    Rung("+MPC", ("multi_polynomial",)),
    Rung("+keys shared by a batch", ("shared_keys",), "ours: EvalMod's halves are a batch of two"),
    Rung("+overlap of launches", ("launch_overlap",), "ours, in the place of pipelining"),
)
THEODOSIAN_7A = Ladder(
    "theodosian-7a", "Theodosian, Fig. 7a: a key switch", _THEODOSIAN, (_PIPELINING, _FP64)
)
THEODOSIAN_8A = Ladder(
    "theodosian-8a", "Theodosian, Fig. 8a: a bootstrapping", _THEODOSIAN,
    (
        _PIPELINING,
        ("OverModRaise", "no switch of the device: the ladder by the algorithm has it; on in every rung"),
        _SUBRING,
        _FP64,
    ),
)  # fmt: skip
OURS = Ladder(
    "crenel", "in our own order",
    (
        Rung("nothing", ()),
        Rung("+hoisting", ("hoisting",)),
        Rung("+merged rescale", ("merged_rescale",)),
        Rung("+products in one launch", ("tensor", "tensor_square", "key_multiply", "plain_sums")),
        Rung("+sums in registers", ("linear_combination", "automorphism_add", "doubling")),
        Rung("+sums of hoisted steps", ("hoisted_sums",)),
        Rung("+whole polynomials", ("multi_polynomial", "mod_up")),
        Rung("+ends of divisions", _SEQUENTIAL),
        Rung("+key product in the transform", ("key_switch", "lift")),
        Rung("+keys shared by a batch", ("shared_keys",)),
        Rung("+rotations and products in its passes", ("rotated_rows", "product_rows")),
        Rung("+beginnings of divisions in them", ("divided_rows",)),
        Rung("+base conversion", ("held_sources", "conversion_shape")),
        Rung("+conversion with the column pass", ("convert_columns",)),
        Rung("+graphs", ("graphs",)),
        Rung("+overlap of launches", ("launch_overlap",)),
        Rung("+halves of batches on halves of GPUs", ("entries_apart",)),
    ),
)  # fmt: skip
# Of an operation; every one also gets all switches off, one after the other.
LADDERS = {"bootstrap": (THEODOSIAN_8A, CHEDDAR, OURS), "key_switch": (THEODOSIAN_7A, OURS)}
WITHOUT, NUMBERS = "without", "numbers"


@dataclass(frozen=True)
class Plain:
    """A number of launches at the value that does without what it is for."""

    name: str
    value: int
    note: str


PLAIN = (
    Plain("part_bytes", 1 << 40, "everything at once, whatever the cache holds"),
    Plain("row_polys", 1, "a block of a row pass transforms one polynomial"),
    Plain("row_blocks", 1, "as many polynomials a block for small grids as for large ones"),
    Plain("conversion_start", 0, "shares of base conversions as if blocks began at no cost"),
    Plain("sums_walk", 0, "warps of hoisted sums take neighbouring values"),
    Plain(
        "folded_matrices", 0, "no twiddles in the matrices of base conversions: fewer bytes, more products"
    ),
    Plain("conversion_early", 0, "a base conversion starts when the pass before it has ended"),
    Plain("passes_early", 0, "so does every pass"),
    Plain("discard_read", 0, "what is read for the last time is written back to the memory all the same"),
)
# Numbers of launches that are no rung, and why.
NOT_PLAIN = {
    "conversion_outputs": "a bound on what conversion_shape chooses, which is a switch",
    "conversion_granule": "whole steps are the plain value and the one it begins with",
    "conversion_pairs": "of clusters, which GPUs before compute capability 9.0 have not",
    "switch_rows": "of TFHE's key switch: crenel tune times it on gates",
    "switch_blocks": "of TFHE's key switch: crenel tune times it on gates",
}

# Switches whose absence changes no launch of an operation, and why.
_PASSES = "nothing is left of it: passes of the key switch make products as they read (product_rows)"
_NONE = "a key switch alone has none of it"
_INSIDE = "it is inside key_switch, without which it counts"
_START = "when a launch begins is no part of the account: it tells on a GPU"
_PARTS = "of devices of several parts (cuda:0+1)"
UNUSED: Mapping[str, Mapping[str, str]] = {
    "bootstrap": {
        "tensor_square": _PASSES,
        "doubling": _PASSES,
        "plain_sums": "sums with plaintexts are those of linear transforms, which hoisted_sums makes",
        "automorphism_add": "the key switch adds a rotation where it writes it (rotated_rows)",
        "launch_overlap": _START,
        "entries_apart": _PARTS,
    },
    "key_switch": {
        **dict.fromkeys(("tensor", "tensor_square", "doubling", "linear_combination", "plain_sums",
                         "automorphism_add", "hoisted_sums", "shared_keys", "rotated_rows", "product_rows",
                         "hoisting", "merged_rescale"), _NONE),
        **dict.fromkeys(("mod_up", "key_multiply"), _INSIDE),
        "lift": "what is added to a relinearisation comes with the division",
        "launch_overlap": _START,
        "entries_apart": _PARTS,
    },
}  # fmt: skip


def only(names: Iterable[str]) -> Optimisations:
    """These and no others."""
    return Optimisations.none().replace(**dict.fromkeys(names, True))


@dataclass
class Measured:
    """One configuration. Times in microseconds; of cuda:dry there are bounds of its launches alone."""

    ladder: str
    rung: str
    off: list[str]
    launches: int | None = None
    bytes: int | None = None
    """At L2."""
    dram_bytes: int | None = None
    """By the model of crenel.dram."""
    products: int | None = None
    bound_us: float | None = None
    paced_us: float | None = None
    """The bound where no launch is shorter than it takes to start one, by a graph or in a stream."""
    latency_us: float | None = None
    """Median."""
    min_us: float | None = None
    repeats: int = 0
    digest: str | None = None
    """Of the result: SHA-256 of its file, 16 digits."""
    error: float | None = None
    """Largest, of a slot."""
    correct: bool | None = None
    note: str = ""
    numbers: dict[str, int] = field(default_factory=dict)
    """Of launches, that are not as the device has them."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of the bootstrap, that are not the defaults."""
    expected_error: float | None = None
    """By the bootstrap's model; only where the algorithm differs."""

    def states(self) -> tuple[Any, ...]:
        """What the account says of its launches."""
        return self.launches, self.bytes, self.dram_bytes, self.products, self.bound_us, self.paced_us

    @property
    def us(self) -> float | None:
        """What bars show: measured, or else the bound."""
        return self.paced_us if self.latency_us is None else self.latency_us


@dataclass
class Bench:
    """One operation on one device, with keys and inputs that all configurations share."""

    context: ckks.Context
    operation: str
    limbs: int
    work: Callable[..., ckks.Ciphertext]
    inputs: tuple[ckks.Ciphertext, ...]
    evaluator: ckks.Evaluator
    client: ckks.Client
    expected: np.ndarray[Any, Any] | None
    """Slots of the right result; None: only bits are compared."""
    in_a_row: int = 1
    """How often a call computes the same; figures are of one."""
    known: dict[Optimisations, Measured] = field(default_factory=dict)
    ceilings: analyze.Ceilings = field(default_factory=analyze.load_ceilings)
    """That bounds are made with."""

    @property
    def device(self) -> crenel.Device:
        """Of the context."""
        return self.context.device

    @property
    def title(self) -> str:
        """For people."""
        return "bootstrapping" if self.operation == "bootstrap" else f"a key switch of {self.limbs} limbs"

    @property
    def dry(self) -> bool:
        """Computes nothing?"""
        return self.device.name.startswith("cuda:dry")


def prepare(params: ckks.Params, device: crenel.Device, operation: str, limbs: int, seed: int) -> Bench:
    """Keys and a fresh input. `limbs` of a key switch, as near as there are; of a bootstrap it is ignored."""
    context = ckks.Context(params, device=device)
    client = context.keygen()
    rng = np.random.default_rng(seed)
    slots = params.slots

    def vector() -> np.ndarray[Any, Any]:
        return rng.uniform(-1, 1, slots) + 1j * rng.uniform(-1, 1, slots)

    if operation == "bootstrap":
        keys = client.evaluation_keys(bootstrap=True)
        boot = context.bootstrapper(keys)
        level = boot.levels.input
        values = vector()
        inputs = (client.encrypt(values, level=level),)
        evaluator = context.evaluator(keys)
        return Bench(
            context, operation, sum(params.levels[level]), boot.eager, inputs, evaluator, client, values
        )
    level = min(range(params.max_level + 1), key=lambda k: abs(sum(params.levels[k]) - limbs))
    evaluator = context.evaluator(client.evaluation_keys())
    a, b = vector(), vector()
    product = evaluator.multiply_lazy(client.encrypt(a, level=level), client.encrypt(b, level=level))

    def several(x: ckks.Ciphertext) -> ckks.Ciphertext:
        for _ in range(IN_A_ROW - 1):
            evaluator.relinearise(x)
        return evaluator.relinearise(x)

    limbs = sum(params.levels[level])
    return Bench(context, operation, limbs, several, (product,), evaluator, client, a * b, IN_A_ROW)


def _digest(result: ckks.Ciphertext) -> str:
    return hashlib.sha256(result.to_bytes()).hexdigest()[:16]


def _judge(bench: Bench, found: Measured, result: ckks.Ciphertext, first: Measured | None) -> None:
    """Bits, or where these may differ the error, against those with all optimisations."""
    found.digest = _digest(result)
    if bench.expected is not None:
        found.error = float(np.abs(bench.client.decrypt(result) - bench.expected).max())
    if first is None or found.digest == first.digest:
        found.correct = True
    else:
        inexact = bool(INEXACT & set(found.off)) and found.error is not None and first.error is not None
        # Errors of the rescale add to those of everything before: of the same size.
        found.correct = inexact and found.error <= 4 * first.error  # type: ignore[operator]


def run(
    bench: Bench,
    wanted: Optimisations,
    repeats: int,
    seconds: float,
    first: Measured | None,
    numbers: Mapping[str, int] | None = None,
) -> Measured:
    """One configuration: its launches, its result, its time. Of `repeats` as many as `seconds` allow, one at
    least. `numbers` are of a GPU's launches. The device has its own optimisations and numbers again
    afterwards."""
    before = bench.device.optimisations
    own = tuning_of(bench.device) if numbers else {}
    found = Measured("", "", wanted.off, numbers=dict(numbers or {}))
    bench.device.optimisations = wanted
    try:
        if numbers:
            set_tuning(bench.device, numbers)
        call: Callable[..., ckks.Ciphertext] = bench.work
        if wanted.graphs and bench.device.has_graphs:
            call = ckks.Graph(bench.evaluator, bench.work, *bench.inputs)
        result = call(*bench.inputs)  # warms the memory
        if bench.device.kind == "cuda":
            with crenel.profile(bench.context) as account:
                call(*bench.inputs)
            _state(found, account, bench)
        if bench.dry:
            return found
        bench.context.synchronize()
        _judge(bench, found, result, first)
        del result
        times: list[float] = []
        while not times or (len(times) < repeats and sum(times) < seconds):
            start = time.perf_counter()
            call(*bench.inputs)
            bench.context.synchronize()
            times.append(time.perf_counter() - start)
        us = 1e6 / bench.in_a_row
        found.latency_us, found.min_us = us * statistics.median(times), us * min(times)
        found.repeats = len(times)
    finally:
        bench.device.optimisations = before
        if own:
            set_tuning(bench.device, own)
    return found


def _state(found: Measured, account: crenel.Account, bench: Bench) -> None:
    times = bench.in_a_row
    whole = analyze.total(account.records(), bench.ceilings)
    found.launches = round(whole.launches / times)
    found.bytes, found.products = round(whole.bytes / times), round(whole.multiply_adds / times)
    found.dram_bytes = round(whole.dram_bytes / times)
    found.bound_us, found.paced_us = 1e6 * whole.bound / times, 1e6 * whole.paced / times


def ladders(
    bench: Bench, repeats: int, seconds: float, say: Callable[[str], None] = lambda text: None
) -> list[Measured]:
    """All ladders of the operation, then every optimisation off alone ("without"), and on a GPU every number
    of `PLAIN` alone ("numbers"). A set of optimisations that comes twice is measured once."""
    everything = Optimisations()
    plan = [
        (ladder.name, rung.name, rung.note, wanted)
        for ladder in LADDERS[bench.operation]
        for rung, wanted in ladder.configurations()
    ]
    plan += [(WITHOUT, "(all on)", "", everything)]
    plan += [(WITHOUT, name, "", everything.replace(**{name: False})) for name in ALL]
    first = bench.known[everything] = run(bench, everything, repeats, seconds, None)
    rows = []
    for ladder, rung, note, wanted in plan:
        say(f"{bench.operation}: {ladder}, {rung}")
        if wanted not in bench.known:
            bench.known[wanted] = run(bench, wanted, repeats, seconds, first)
        rows.append(Measured(**{**asdict(bench.known[wanted]), "ladder": ladder, "rung": rung, "note": note}))
    for row in rows:
        if row.ladder == WITHOUT and row.off and row.launches is not None and row.states() == first.states():
            row.note = UNUSED[bench.operation].get(row.rung, "")
    for plain in PLAIN if bench.device.kind == "cuda" else ():
        say(f"{bench.operation}: {NUMBERS}, {plain.name}")
        value = min(plain.value, tunables()[plain.name][1])
        found = run(bench, everything, repeats, seconds, first, {plain.name: value})
        found.ladder, found.rung, found.note = NUMBERS, f"{plain.name} {value}", plain.note
        rows.append(found)
    return rows


def of(params_name: str) -> ckks.Params:
    """A set by its name, toy ones too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", crenel.InsecureParametersWarning)
        return ckks.preset(params_name, allow_insecure=True)


def document(
    benches: Sequence[tuple[Bench, Sequence[Measured]]],
    params: str,
    where: dict[str, Any],
    further: Sequence[Ladder] = (),
) -> dict[str, Any]:
    """Plain data, as bench/results keeps it; `further` are ladders of other modules that rows are of."""
    operations = []
    for bench, rows in benches:
        titles = {
            ladder.name: {"title": ladder.title, "absent": [list(each) for each in ladder.absent]}
            for ladder in (*LADDERS[bench.operation], *further)
            if any(row.ladder == ladder.name for row in rows)
        }
        facts = {"operation": bench.operation, "title": bench.title, "limbs": bench.limbs, "ladders": titles}
        facts |= {"ceilings_of": bench.ceilings.device} if bench.device.kind == "cuda" else {}
        operations.append({**facts, "rows": [asdict(row) for row in rows]})
    return {
        "kind": "crenel-ablation",
        "format": 1,
        "provenance": where,
        "params": params,
        "fusions": [asdict(fusion) for fusion in FUSIONS],
        "optimisations": Optimisations.meanings(),
        "operations": operations,
    }
