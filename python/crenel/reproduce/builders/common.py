"""Questions to the records that items of several papers ask."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from crenel import ckks
from crenel.reproduce.outcome import COMPUTED, Work, made
from crenel.reproduce.registry import Cell
from crenel.reproduce.results import Found, Results, by_device, newest, short_device

NEAR = 2  # numbers of limbs that may be compared differ by this much at most
US_PER_MS = 1e3
FIRST = "coeff_to_slot_first"
PLAIN = "--plain-keys"  # of a run without keys for aligned levels, to tell what they bring
# The papers' sizes of HELR and Sort.
HELR = {"batch": 1024, "features": 196, "steps": 32}
SORTED = 1 << 14


def boots(
    results: Results, params: str, *, graph: bool | None = None, keys: str = "hoisted"
) -> dict[str, Found]:
    """The newest full-slot bootstrapping of one ciphertext on each device; without `graph` that of a CUDA
    graph, where the device has one."""
    if graph is None:
        return boots(results, params, graph=False, keys=keys) | boots(results, params, graph=True, keys=keys)
    found = results.rows("boot", name="bootstrap", params=params, graph=graph, keys=keys, batch=1)
    whole = [f for f in found if f.row["slots"] == 1 << (f.row["log_n"] - 1)]
    # "device": of several GPUs; older records say no kind of message
    full = [f for f in whole if "device" not in f.row and f.row.get("message", "complex") == "complex"]
    # Not those of keys that are moved or change, nor of keys without aligned levels beside others, nor what
    # several GPUs are compared with; and CoeffToSlot first, as the papers: the other order leaves other
    # levels.
    full = [f for f in full if "beside" not in results.documents.get(f.file, {})]
    own = [f for f in full if f.row.get("slot_level_ns") and f.row.get("order", FIRST) == FIRST]
    return _newest(f for f in own if PLAIN not in str(f.provenance.get("command")))


def _newest(found: Iterable[Found]) -> dict[str, Found]:
    return {device: last for device, own in by_device(found).items() if (last := newest(own))}


def helr(results: Results, params: str) -> dict[str, tuple[Found, float, float]]:
    """On each device (a run, median time of an iteration in us, median accuracy) over the untimed runs of the
    newest record; where all were timed by stages, over these. Of the papers' size, or of toy runs any."""
    out = {}
    found = results.rows("workload", name="helr", params=params, graph=False)
    same = [f for f in found if results.toy or all(f.row[key] == value for key, value in HELR.items())]
    for device, own in by_device(same).items():
        last = newest([f for f in own if not f.row["stages_timed"]] or own)
        assert last
        runs = [f for f in own if f.file == last.file]
        chosen = [f for f in runs if not f.row["stages_timed"]] or runs
        time = statistics.median(float(f.row["latency_us"]) for f in chosen)
        accuracy = statistics.median(100 * float(f.row["iterations"][-1]["accuracy"]) for f in chosen)
        out[device] = chosen[0], time, accuracy
    return out


def sorts(results: Results, params: str) -> list[tuple[Found, float, float]]:
    """Of each device and variant (a run, seconds, bits): the newest, medians over the untimed runs."""
    groups: dict[tuple[str, str, int, str], list[Found]] = {}
    for f in results.rows("workload", name="sort", params=params, graph=False):
        if f.row["count"] != SORTED and not results.toy:
            continue
        key = f.device, str(f.row["variant"]), int(f.row["radix"]), str(f.row["comparator"])
        groups.setdefault(key, []).append(f)
    out = []
    for own in groups.values():
        chosen = [f for f in own if not f.row["stages_timed"]] or own
        seconds = statistics.median(float(f.row["total_s"]) for f in chosen)
        out.append((chosen[0], seconds, statistics.median(float(f.row["error_bits"]) for f in chosen)))
    return out


@dataclass(frozen=True)
class Network:
    """The fastest run of one image with one choice of polynomials on a device."""

    run: Found
    accuracy: Found | None
    """Of runs with the same polynomials and weights on the same set, that over the most images: it depends on
    neither the batch nor the device."""

    @property
    def polynomials(self) -> str:
        """As relu 63 x 19: what, of which degrees, how many."""
        return str(self.run.row["activation"])

    @property
    def seconds(self) -> float:
        """Of the image."""
        return float(self.run.row["latency_us"]) / 1e6

    @property
    def judged(self) -> Cell:
        """Accuracy in per cent, with the number of images that it is of."""
        if self.accuracy is None:
            return None
        row = self.accuracy.row
        return f"{100 * row['accuracy']:.1f} of {row['steps']:,} images"


def network(results: Results, name: str, params: str) -> list[Network]:
    """Of each device and choice of polynomials, the fastest first on each device."""
    found = networks(results, name, params)
    best: dict[tuple[str, str], Found] = {}
    for f in found:
        key = f.device, str(f.row["activation"])
        if f.row["batch"] == 1 and (key not in best or f.row["latency_us"] < best[key].row["latency_us"]):
            best[key] = f
    out = [Network(f, _most_images(found, f)) for f in best.values()]
    devices = list(dict.fromkeys(each.run.device for each in out))
    return sorted(out, key=lambda each: (devices.index(each.run.device), each.seconds))


def _most_images(found: Iterable[Found], run: Found) -> Found | None:
    same = ("activation", "weights")
    alike = [f for f in found if all(f.row.get(key) == run.row.get(key) for key in same)]
    judged = [f for f in alike if f.row.get("accuracy") is not None]
    return max(judged, key=lambda f: (f.row["steps"], f.date), default=None)


def networks_by_device(own: Iterable[Network]) -> dict[str, list[Network]]:
    """Groups in order of appearance."""
    groups: dict[str, list[Network]] = {}
    for each in own:
        groups.setdefault(each.run.device, []).append(each)
    return groups


def remark_polynomials(work: Work, own: Sequence[Network]) -> None:
    """What the papers' ReLU is, and what ours: times of networks with others are not alike."""
    if not own:
        return
    counts = {each.polynomials: each.run.row.get("bootstraps") for each in own}
    ours = "; ".join(name + (f", {n} bootstraps" if n is not None else "") for name, n in counts.items())
    work.remark(
        "The papers' ResNet-20 has 14 levels a ReLU (Cheddar, section 7.1; Theodosian runs the circuit of the"
        " same reference), as a sign composed of degrees 15, 15 and 27 and the product with it take. One"
        " polynomial of degree 63 takes 6, and so fewer bootstraps: like for like are rows with composed"
        f" degrees. Ours here, as degrees x how many: {ours}."
    )


def networks(results: Results, name: str, params: str) -> list[Found]:
    """Every run of a network that encrypted something."""
    found = results.rows("workload", name="network", network=name, params=params)
    return [f for f in found if not f.row.get("simulated")]


def share_of_stages(found: Iterable[Found], names: Sequence[str]) -> tuple[Found, float] | None:
    """Of the newest run with timed stages: the share of these stages, 0 to 1."""
    last = newest([f for f in found if f.row.get("stages")])
    if last is None:
        return None
    stages = last.row["stages"]
    total = sum(float(s["seconds"]) for s in stages)
    return last, sum(float(s["seconds"]) for s in stages if s["name"] in names) / total


def operation(results: Results, name: str, limbs: int) -> dict[str, Found]:
    """An operation of CKKS on each device: by events around single calls on the same inputs, nearest to the
    number of limbs."""
    found = results.rows(
        "ckks", name=name, batch=1, graph=False, timing="each", inputs="same", params="boot40"
    )
    near = [f for f in found if abs(int(f.row["limbs"]) - limbs) <= NEAR]
    closest = min((abs(int(f.row["limbs"]) - limbs) for f in near), default=0)
    return _newest(f for f in near if abs(int(f.row["limbs"]) - limbs) == closest)


def traffic(
    results: Results, params: str, name: str, level: int | None = None
) -> tuple[str, dict[str, Any]] | None:
    """What the launches of an operation state: (file, record). Of several, the newest."""
    found = [
        (file, data)
        for file, data in results.of_kind("crenel-traffic")
        if (data["params"], data["operation"]) == (params, name) and level in (None, data["level"])
    ]
    return max(found, key=lambda f: _date(f[1]), default=None)


def _date(data: Mapping[str, Any]) -> str:
    """Empty where the record has none, as those of the first days."""
    return str(data.get("provenance", {}).get("date", ""))


def take_traffic(work: Work, found: tuple[str, Mapping[str, Any]], kind: str = COMPUTED) -> None:
    """Notes the record as a source; ``SIMULATED`` where its bound stands in the place of a time."""
    file, data = found
    at = f"{data['params']}, level {data['level']}"
    what = f"launches of {data['operation']}, {at}, stated by {data['device']}"
    work.source(file, made(what, data.get("provenance", {})), kind)


def kernel_rows(results: Results, stage: str) -> tuple[str, dict[str, Any], list[dict[str, Any]]] | None:
    """Launches under hardware counters whose outermost label is this, of the newest record that has some:
    (file, record, rows)."""
    for file, data in sorted(results.of_kind("crenel-ncu-account"), key=lambda f: _date(f[1]), reverse=True):
        rows = [row for row in data["rows"] if row["stage"].split("/")[0] == stage]
        if rows:
            return file, data, rows
    return None


def counted(data: Mapping[str, Any], what: str) -> str:
    """Device and parameters of such a record, what was counted, and by which program."""
    of = data["provenance"]
    return made(f"{short_device(of)}, {of['params']}, {what}", of)


def ceilings() -> Mapping[str, Any]:
    """Rates of the package's ceilings.json by name."""
    text = resources.files("crenel").joinpath("ceilings.json").read_text(encoding="utf-8")
    data: Mapping[str, Any] = json.loads(text)
    return data


def rate(name: str) -> float:
    """One of them."""
    return float(ceilings()["rates"][name]["value"])


def preset(work: Work, name: str) -> ckks.Params:
    """A set of parameters, noted as a source."""
    params = ckks.preset(name)
    work.source(f"params/{name}.toml", "the parameter set", COMPUTED)
    return params


def percent(part: float, whole: float) -> float:
    """A share in per cent."""
    return 100 * part / whole if whole else 0.0


def ratio(theirs: float | None, ours: float | None) -> Cell:
    """How many times theirs is of ours."""
    return None if theirs is None or ours is None else theirs / ours


def predictions(results: Results, target: str) -> tuple[str, dict[str, Any]] | None:
    """The model's record of a target, of the model and calibration that the validation beside it is of."""
    validated = {d.get("fingerprint") for _, d in results.of_kind("fhecore-validation") if d["passed"]}
    found = [(f, d) for f, d in results.of_kind("fhecore-predictions") if d["target"] == target]
    return next((each for each in found if each[1]["fingerprint"] in validated), None)
