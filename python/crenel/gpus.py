"""What several GPUs of one host would do, by the traffic account of one and measured links.

Two ways to use them, each with what it takes:

* **ciphertexts spread** (`ckks.DevicePool`, `tfhe.DevicePool`): every GPU has all keys and computes whole
  bootstraps. Inputs and results cross the links once. An array of TFHE is cut on the GPU where it lies and
  joined there again.
* **limbs spread** (a model of `Device("cuda:0+1")`): a ciphertext's limbs are divided among
  the GPUs, and the keys with them. Base conversion needs all source limbs: after an inverse transform each
  GPU stores its share to the others (*gathered*), or each keeps the digits that it holds, and sums over
  digits are added up over the links (*aggregated*). What a launch takes however little there is to do does
  not divide (`crenel.launch_times`).

Pure arithmetic on the records of ``crenel.Account``; ``crenel gpus`` prints it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from crenel import analyze
from crenel.account import Record
from crenel.analyze import Ceilings
from crenel.launch_times import LaunchTimes

WORD = 4  # bytes of a residue
MOST_EACH = 1 << 20  # things a GPU in a batch
GATE = 3  # arrays of a gate: two inputs, one result
SPREAD_BY_DIGIT = ("mod_up", "key_switch")  # stages that know digits
APART = "eval_mod"  # the stage whose entries groups of GPUs share
GROUPS = 2  # of them


@dataclass(frozen=True)
class Links:
    """Rates between GPUs of one host, by bytes: of the copy engine, and of kernels that write to all peers;
    seconds in which all GPUs wait for each other inside running kernels."""

    copies: tuple[tuple[float, float], ...]
    stores: tuple[tuple[float, float], ...]
    barrier: float

    def copied(self, nbytes: float) -> float:
        """Seconds of one copy."""
        return nbytes / _rate(self.copies, nbytes) if nbytes else 0.0

    def stored(self, nbytes: float) -> float:
        """Seconds in which a kernel's stores of so many bytes reach the peers, without the barrier."""
        return nbytes / _rate(self.stores, nbytes) if nbytes else 0.0


def load_links() -> Links:
    """The rates of ceilings.json."""
    found = analyze.data()["links"]
    curves = {
        name: tuple((float(size), float(rate)) for size, rate in found[name]["by_size"])
        for name in ("copies", "stores")
    }
    return Links(**curves, barrier=float(found["barrier"]["value"]))


def most() -> int:
    """The largest number of GPUs that reach each other's memory: beyond, nothing of this model holds."""
    return int(analyze.data()["links"]["classes"]["nvlink-domain"]["most"])


def _rate(curve: Sequence[tuple[float, float]], nbytes: float) -> float:
    """Of the nearest measured size, linear in the logarithm between two."""
    if nbytes <= curve[0][0]:
        return curve[0][1]
    for (low, slow), (high, fast) in pairwise(curve):
        if nbytes <= high:
            return slow + (fast - slow) * math.log(nbytes / low) / math.log(high / low)
    return curve[-1][1]


@dataclass(frozen=True)
class Accounts:
    """Launches of one operation: on one GPU, and as several that share its limbs queue them. They differ:
    several exchange what a division drops as key switches wrote it, where one transforms it on the way."""

    one: Sequence[Record]
    several: Sequence[Record]
    apart: bool = False
    """EvalMod has real and imaginary parts: each goes through it on half of an even number of GPUs."""
    alone: bool = False
    """A GPU that has one of these parts by itself queues it as one GPU does."""

    def of(self, gpus: int, apart: bool) -> Sequence[Record]:
        """On so many GPUs, with EvalMod's parts apart or not."""
        if gpus == 1:
            return self.one
        if not (apart and self.alone and gpus == GROUPS):
            return self.several
        inside = (list(run) for there, run in groupby(self.one, _is_apart) if there)
        around = ((there, list(run)) for there, run in groupby(self.several, _is_apart))
        return [record for there, run in around for record in (next(inside) if there else run)]


@dataclass(frozen=True)
class Spread:
    """Ciphertexts spread over `gpus`: seconds of a batch, and what they are made of."""

    gpus: int
    batch: int
    compute: float
    copies: float  # over links
    within: float  # copies inside the first GPU's memory
    rate: float  # things a second
    speedup: float  # against one GPU
    peer_bytes: int  # through the first GPU's links, in both directions


def spread(one: float, bytes_in: int, bytes_out: int, gpus: int, each: int, links: Links) -> Spread:
    """`each` things a GPU of `one` second each, whose inputs and results lie on the first GPU.

    Assumed: GPUs do not wait for each other but at the end; results cross one after the other, in copies of
    one thing; nothing overlaps, which is so of `ckks.DevicePool`.
    """
    things = each * (gpus - 1)
    copies = things * (links.copied(bytes_in) + links.copied(bytes_out))
    return _spread(one * each, copies, 0.0, gpus, each, things * (bytes_in + bytes_out))


def spread_gates(batch: float, nbytes: int, gpus: int, each: int, links: Links, ceilings: Ceilings) -> Spread:
    """An array of `each` gates a GPU, a GPU's share in `batch` seconds; `nbytes` a share of one array.

    Assumed: as of `spread`, in copies of whole shares. Where there are several, the first GPU copies each
    share of the inputs out of the array and the results into one, at its memory's rate, read and written:
    which is so of `tfhe.DevicePool`.
    """
    crossing = GATE * (gpus - 1)
    shares = GATE * gpus if gpus > 1 else 0
    within = shares * 2 * nbytes / ceilings.dram
    return _spread(batch, crossing * links.copied(nbytes), within, gpus, each, crossing * nbytes)


def _spread(compute: float, copies: float, within: float, gpus: int, each: int, peer_bytes: int) -> Spread:
    batch = each * gpus
    rate = batch / (compute + copies + within)
    return Spread(gpus, batch, compute, copies, within, rate, rate * compute / each, peer_bytes)


@dataclass(frozen=True)
class Divided:
    """One ciphertext's limbs over `gpus`: seconds of one operation.

    ``latency``: links and arithmetic one after the other; ``overlapped``: the stores of an exchange hidden
    behind the kernel that makes its data, as far as that is long (stores by a transform's last pass were
    measured not to hide); ``least``: links at no cost. ``exchanges``: kernels after which all wait for all.
    Memory of keys divides by the GPUs.
    """

    gpus: int
    way: str
    compute: float
    links: float
    latency: float
    overlapped: float
    least: float
    exchanges: int
    peer_bytes: int  # written by one GPU to the others


def divided(
    accounts: Accounts,
    ring_dim: int,
    gpus: int,
    way: str,
    ceilings: Ceilings,
    links: Links,
    times: LaunchTimes,
) -> Divided:
    """The account of one operation of batch 1, its limbs over so many GPUs. `way`: 'gathered', 'aggregated'.
    Gathered, of parts that lie apart (`Accounts.apart`) each half of the GPUs has one, and its exchanges.

    Assumed: limbs are dealt so that every launch has an equal share of them but for rounding up (of l limbs
    ceil(l / gpus)), and takes what `times` says of a share as large; base conversions read all their sources
    everywhere. Where digits are spread, ModUp and the products with keys of a switch of d digits have
    ceil(d / gpus) of them.
    """
    compute = link = hidden = 0.0
    exchanges = peer = 0
    for launch in launches(accounts, ring_dim, gpus, way, ceilings, times):
        compute += launch.seconds
        if sent := launch.sent:
            took = links.stored(sent) + links.barrier
            exchanges += 1
            peer += sent
            link += took
            hidden += max(0.0, links.stored(sent) - launch.seconds) + links.barrier
    return Divided(gpus, way, compute, link, compute + link, compute + hidden, compute, exchanges, peer)


@dataclass(frozen=True)
class Launch:
    """One launch of an operation whose limbs are spread."""

    seconds: float  # on the GPU that has most of its work
    group: int  # GPUs that it is spread over
    whole: int = 0  # bytes of all limbs that every GPU of the group needs afterwards
    moved: int = 0  # bytes that one GPU stores to one of another group

    @property
    def sent(self) -> int:
        """Bytes that one GPU writes to the others: of its share to each of them, or of sums over its digits
        all but its own share."""
        return self.whole * (self.group - 1) // self.group + self.moved


def launches(
    accounts: Accounts, ring_dim: int, gpus: int, way: str, ceilings: Ceilings, times: LaunchTimes
) -> list[Launch]:
    """Of one operation of batch 1, its limbs over so many GPUs; see `divided`."""
    apart = accounts.apart and gpus % GROUPS == 0 and way == "gathered"
    records = accounts.of(gpus, apart)
    found = [
        Launch(seconds, group, gathered_bytes(record, way, ring_dim))
        for run, group in _groups(records, gpus, apart)
        for record, seconds in zip(run, shares(run, group, way, ceilings, times), strict=True)
    ]
    return found + (_regrouped(records, gpus, ring_dim, ceilings) if apart else [])


def _groups(records: Sequence[Record], gpus: int, apart: bool) -> list[tuple[list[Record], int]]:
    """Runs of launches, and over how many GPUs the limbs of each are spread; of EvalMod those of one part."""
    found: list[tuple[list[Record], int]] = []
    for inside, run in groupby(records, lambda record: apart and _is_apart(record)):
        launches = list(run)
        found.append(([_half(r) for r in launches], gpus // GROUPS) if inside else (launches, gpus))
    return found


def _is_apart(record: Record) -> bool:
    return record["stage"].split("/")[0] == APART


def _half(record: Record) -> Record:
    """A launch on half of the entries: keys are read as before."""
    half: Any = record.copy()
    half["polys"] = record["polys"] // GROUPS
    half["read_bytes"] = (record["read_bytes"] - record["streamed_bytes"]) // GROUPS + record[
        "streamed_bytes"
    ]
    for name in ("written_bytes", "multiply_adds", "butterflies"):
        half[name] = record[name] // GROUPS
    halved: Record = half
    return halved


def _regrouped(records: Sequence[Record], gpus: int, ring_dim: int, ceilings: Ceilings) -> list[Launch]:
    """What brings EvalMod's parts to their GPUs, and back: each GPU stores its limbs of the other half's
    part, or those that others keep; a kernel to meet before."""
    inside = [record for record in records if _is_apart(record)]
    ends = (inside[0], inside[-1]) if inside else ()
    moved = [2 * record["limbs"] * ring_dim * WORD // gpus for record in ends]
    return [Launch(2 * ceilings.launch, gpus, moved=nbytes) for nbytes in moved]


def shares(
    records: Sequence[Record], gpus: int, way: str, ceilings: Ceilings, times: LaunchTimes
) -> list[float]:
    """Seconds of each launch on the GPU that has most of its work."""
    found = []
    digits = 0
    for record in records:
        if record["work"] == "base_conversion" and _knows_digits(record):
            digits = record["polys"]
        parts = max(digits if _by_digit(record, way) else record["limbs"], 1)
        share = math.ceil(parts / gpus) / parts
        part: Any = dict(record)
        for name in ("written_bytes", "streamed_bytes", "multiply_adds", "butterflies"):
            part[name] = int(record[name] * share)
        if record["work"] != "base_conversion":
            part["read_bytes"] = int(record["read_bytes"] * share)
        found.append(times.seconds(part, ceilings))
    return found


def gathered_bytes(record: Record, way: str, ring_dim: int) -> int:
    """Bytes of all limbs that every GPU needs after a launch; 0: none that it does not have."""
    by_digit = _by_digit(record, way)
    gathered = record["kernel"] == "column_inverse" and not by_digit
    if gathered or (way == "aggregated" and record["work"] == "key_multiply"):
        return record["limbs"] * record["polys"] * ring_dim * WORD
    return 0


def _by_digit(record: Record, way: str) -> bool:
    return way == "aggregated" and _knows_digits(record)


def _knows_digits(record: Record) -> bool:
    last = record["stage"].split("/")[-1]
    return record["work"] == "key_multiply" or last in SPREAD_BY_DIGIT
