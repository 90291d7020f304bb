"""Numbers that a GPU's launches go by, found for the GPU at hand and kept as data.

They say into what work is divided (`tunables`), and change how long it takes and no bit of a
result. ``crenel tune`` searches; `tuned` opens a device with what it stored.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from crenel._crenel import Device, default_tuning
from crenel._crenel import set_tuning as _set_tuning
from crenel._crenel import tunables as tunables
from crenel._crenel import tuning_of as tuning_of
from crenel.errors import DeviceError, ParameterError, SerializationError

KIND, FORMAT = "crenel-tuning", 1
MOST_BYTES = 1 << 20  # of a file
# Switches that the search may leave off: results keep every bit without them.
SWITCHES = (
    "launch_overlap",
    "held_sources",
    "conversion_shape",
    "convert_columns",
    "multi_polynomial",
    "key_switch",
    "division",
)
GAIN = 0.01  # that a change must bring, twice: less is noise
Times = Mapping[str, float]
"""Microseconds by workload."""


def set_tuning(device: Device, values: Mapping[str, int]) -> None:
    """Set some of the numbers of `tunables`, on all parts of a device, of operations that are queued from now
    on.

    Raises ParameterError for what is no mapping of names to whole numbers, a name that there is not and a
    number out of its range, UnsupportedError for a device that has none; and then sets none.
    """
    if not isinstance(device, Device):
        raise ParameterError(
            f"set_tuning: a {type(device).__name__}, expected a Device", {"expected": "Device"}
        )
    if not isinstance(values, Mapping):
        raise ParameterError(
            f"set_tuning: a {type(values).__name__}, expected names and their numbers as a dict",
            {"expected": "dict"},
        )
    chosen: dict[str, int] = {}
    for name, value in values.items():
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not isinstance(name, str) or not whole or not 0 <= value < 1 << 64:
            raise ParameterError(
                f"tuning of {name!r:.40}: {value!r:.40}, expected whole numbers of 64 bits by name",
                {"name": f"{name!r:.40}", "value": f"{value!r:.40}"},
            )
        chosen[name] = int(value)
    _set_tuning(device, chosen)


@dataclass(frozen=True)
class Choice:
    """What a device's launches go by: every number of `tunables`, and the switches that are off."""

    values: Mapping[str, int]
    off: tuple[str, ...] = ()

    def replace(self, name: str, value: int | bool) -> Choice:
        """The same with another number, or a switch on (True) or off."""
        if name in self.values:
            return Choice({**self.values, name: int(value)}, self.off)
        return Choice(self.values, tuple(sorted((set(self.off) - {name}) | (set() if value else {name}))))

    def apply(self, device: Device) -> None:
        """Set it, of operations that are queued from now on.

        Raises ParameterError for a number out of its range, UnsupportedError for a device that has none.
        """
        optimisations = device.optimisations.replace(**dict.fromkeys(SWITCHES, True))
        set_tuning(device, dict(self.values))
        device.optimisations = optimisations.replace(**dict.fromkeys(self.off, False))


@dataclass(frozen=True)
class Step:
    """One thing that was tried: its score is the geometric mean of times over those of the best so far."""

    name: str
    value: int | bool
    score: float
    taken: bool


@dataclass(frozen=True)
class Tuning:
    """A choice, of which device it is, and what it was found by."""

    device: str
    """Its description: how many parts, model, compute capability, memory."""
    processors: int
    choice: Choice
    steps: tuple[Step, ...] = ()
    before: Times = field(default_factory=dict)
    after: Times = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def apply(self, device: Device) -> None:
        """Set it on a device.

        Raises DeviceError for a device that it is not of, ParameterError for a number out of its range.
        """
        if (device.description, device.processors) != (self.device, self.processors):
            raise DeviceError(
                f"the tuning is of {self.device} with {self.processors} multiprocessors, the device is "
                f"{device.description} with {device.processors}: crenel tune finds one for it",
                {"device": device.name, "found": self.device, "expected": device.description},
            )
        self.choice.apply(device)

    def to_json(self) -> str:
        """The file."""
        body = {
            "kind": KIND,
            "format": FORMAT,
            "device": self.device,
            "processors": self.processors,
            "values": dict(self.choice.values),
            "off": list(self.choice.off),
            "steps": [vars(step) for step in self.steps],
            "before_us": dict(self.before),
            "after_us": dict(self.after),
            "provenance": dict(self.provenance),
        }
        return json.dumps({**body, "sha256": _digest(body)}, indent=1) + "\n"

    @staticmethod
    def from_json(text: str, name: str = "the tuning") -> Tuning:
        """Of a file's text; `name` is what errors call it.

        Raises SerializationError for text that is no tuning, one of another format, one that was changed
        since it was written, names that are missing or unknown, and numbers out of their range.
        """
        body = _parsed(text, name)
        _expect(body.pop("sha256", None) == _digest(body), name, "its own SHA-256: the file was changed")
        values, off = body["values"], body["off"]
        known = tunables()
        _expect_names(set(values), known, name)
        for each, value in values.items():
            least, most, _ = known[each]
            right = type(value) is int and least <= value <= most
            _expect(right, name, f"{each} of {least} to {most}, found {value!r:.40}")
        right = isinstance(off, list) and all(each in SWITCHES for each in off) and len(set(off)) == len(off)
        _expect(right, name, "off: some of " + ", ".join(SWITCHES))
        return Tuning(
            body["device"],
            body["processors"],
            Choice(values, tuple(off)),
            tuple(Step(**step) for step in body["steps"]),
            body["before_us"],
            body["after_us"],
            body["provenance"],
        )


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _expect(right: bool, name: str, expected: str) -> None:
    if not right:
        raise SerializationError(f"{name}: expected {expected}", {"file": name, "expected": expected})


def _expect_names(found: Set[str], known: Iterable[str], name: str) -> None:
    """All that are known and no other: numbers come and go with kernels."""
    lacking, strange = [each for each in known if each not in found], sorted(found - set(known))
    parts = [f"{what} {', '.join(them)}" for what, them in (("lacks", lacking), ("has", strange)) if them]
    told = ascii("; ".join(parts)[:300])[1:-1]
    why = f"but {told}: it is of another version, crenel tune finds a new one"
    _expect(not parts, name, f"values of {', '.join(known)}, {why}")


def _parsed(text: str, name: str) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _expect(len({key for key, _ in pairs}) == len(pairs), name, "every name once")
        return dict(pairs)

    _expect(len(text) <= MOST_BYTES, name, f"at most {MOST_BYTES} bytes")
    found: Any = None
    try:
        found = json.loads(text, object_pairs_hook=once)
    except SerializationError:
        raise
    except (ValueError, RecursionError):
        pass  # not of the kind, as is said next
    body: dict[str, Any] = found if isinstance(found, dict) else {}
    _expect(body.get("kind") == KIND, name, f"JSON of kind {KIND}")
    _expect(body.get("format") == FORMAT, name, f"format {FORMAT}")
    kinds = {"device": str, "processors": int, "values": dict, "off": list, "steps": list}
    kinds |= {"before_us": dict, "after_us": dict, "provenance": dict, "sha256": str}
    for key, kind in kinds.items():
        _expect(type(body.get(key)) is kind, name, f"{key}, {kind.__name__}")
    _expect(type(body["format"]) is int, name, f"format {FORMAT}")
    text = body["device"]
    _expect(text.isprintable() and len(text) <= 200, name, "device, one line of 200 characters at most")
    unknown = sorted(set(body) - {"kind", "format", *kinds})
    _expect(not unknown, name, "nothing else, but has " + ascii(", ".join(unknown)[:80]))
    for step in body["steps"]:
        right = isinstance(step, dict) and set(step) == {"name", "value", "score", "taken"}
        _expect(right, name, "steps of name, value, score, taken")
    return dict(body)


def load(path: str | Path) -> Tuning:
    """A tuning from its file, checked.

    Raises SerializationError saying what is wrong with it, FileError where it cannot be read.
    """
    from crenel.workloads.files import opened

    with opened(Path(path)) as file:
        data = file.read(MOST_BYTES + 1)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise SerializationError(f"{path}: expected UTF-8 text", {"file": str(path)}) from None
    return Tuning.from_json(text, str(path))


def tuned(device: str | Device, path: str | Path) -> Device:
    """A device, opened if it is a name, whose launches go by a tuning that ``crenel tune`` stored.

    >>> context = ckks.Context(params, device=crenel.tuned("cuda", "h100.json"))

    Raises SerializationError for a file that is no tuning or was changed, DeviceError for one of another
    device and where the device cannot be had, UnsupportedError for a device that is not CUDA's.
    """
    found = load(path)
    opened = device if isinstance(device, Device) else Device(device)
    default_tuning(opened)  # refuses others first: a tuning of another device is then the smaller mistake
    found.apply(opened)
    return opened


def candidates(defaults: Mapping[str, int]) -> Iterator[tuple[str, list[int | bool]]]:
    """What is tried of each number, and of the switches, in order: what tells most first."""
    part, blocks = defaults["part_bytes"], defaults["row_blocks"]
    yield "part_bytes", [part // 4, part // 2, part * 2, part * 4, tunables()["part_bytes"][1]]
    yield "row_polys", [1, 2, 4, 8, 16]
    yield "row_blocks", [blocks // 4, blocks // 2, blocks * 2]
    yield "conversion_outputs", [16, 32, 48, 64]
    yield "folded_matrices", [0, 2, 4]
    yield "conversion_early", [0, 1]
    yield "conversion_granule", [1, 2, 4, 8]
    yield "conversion_pairs", [0, 1]
    yield "passes_early", [0, 1, 2]
    yield "discard_read", [0, 1]
    yield "conversion_start", [0, 4, 8, 16, 32]
    yield "sums_walk", [0]
    yield "switch_rows", [16, 32, 64, 128, 256]
    yield "switch_blocks", [1, 2, 4, 8, 16]
    for name in SWITCHES:
        yield name, [False]


def score(times: Times, reference: Times) -> float:
    """Geometric mean of times over the reference's; below 1 is faster."""
    return math.exp(math.fsum(math.log(times[name] / reference[name]) for name in reference) / len(reference))


def search(
    measure: Callable[[Choice, str], Times],
    start: Choice,
    gain: float = GAIN,
    say: Callable[[str], None] = lambda text: None,
) -> tuple[Choice, list[Step]]:
    """One number after the other, the best of each kept where it is faster by `gain` twice.

    measure : of a choice and the number that is looked for: times of what that number may change. Times of
        one number are compared with each other alone
    """
    best, steps = start, []
    for name, values in candidates(start.values):
        reference = measure(best, name)
        if not reference:
            continue
        found: tuple[float, int | bool] | None = None
        tried: list[tuple[int | bool, float]] = []
        for value in values:
            if best.replace(name, value) == best:
                continue
            tried.append((value, score(measure(best.replace(name, value), name), reference)))
            say(f"{name} {value}: {tried[-1][1]:.3f}")
            if found is None or tried[-1][1] < found[0]:
                found = tried[-1][1], value
        taken = None
        if found is not None and found[0] < 1 - gain:
            reference = measure(best, name)  # once more, so that no lucky moment counts
            if score(measure(best.replace(name, found[1]), name), reference) < 1 - gain:
                taken = found[1]
        steps += [Step(name, value, ratio, taken is not None and value == taken) for value, ratio in tried]
        best = best if taken is None else best.replace(name, taken)
    return best, steps
