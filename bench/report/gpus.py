"""What several GPUs were measured at, beside what the model of `crenel.gpus` says of the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from crenel import analyze, gpus, tfhe
from crenel.cli import gpus_gates
from crenel.launch_times import load_launch_times, records_of
from report.gpus_plan import prose
from report.text import number, table

RESULTS = Path(__file__).resolve().parents[1] / "results"
ACCOUNTS = "gpus-accounts-boot40.json"
GATES = "gpus-bool128-model.json"
BYTES = (1 << 20, 9961472)  # of a ciphertext that boot40 takes, and of one that it gives
COUNTED_ON = "NVIDIA H200"
APART = ("today", "whole twiddles")  # launches whose EvalMod several GPUs compute in halves
# How far the model may be from a record: of a rate, of a time, and of how many times faster several GPUs are
# than one of the same record, which holds on cards whose launches nobody counted, too. A record that is
# farther off is a reason to mend the model or to say why, before this grows. Farthest off are four GPUs:
# every meeting waits for the last of them, and a pool for the slowest, where the model's are all alike.
AT_MOST = {"times": 0.02, "us": 0.08, "faster": 0.09}
Json = dict[str, Any]


@dataclass(frozen=True)
class Compared:
    """One measurement, and the model's figure where it has one. Times are in us, the rest against one GPU."""

    file: str
    date: str
    card: str
    gpus: int
    what: str
    unit: str
    """"times": of one GPU's rate; "us": the time of one; "faster": one GPU's time over it."""
    measured: float
    model: float | None
    why_not: str = ""

    @property
    def deviation(self) -> float | None:
        """Of the model's time from that measured; above zero: it is said to take longer than it does."""
        if self.model is None:
            return None
        ratio = self.model / self.measured
        return (ratio if self.unit == "us" else 1 / ratio) - 1


@cache
def _loaded(name: str) -> Json:
    found: Json = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found


def forms(file: str) -> str:
    """Of the launches that a record is of: "today" or what the accounts file names, of which "older" ones
    are not kept."""
    known: Json = _loaded(ACCOUNTS)["records"]
    return next((name for name, files in known.items() if file in files), "today")


@cache
def accounts(operation: str, of: str = "today") -> gpus.Accounts:
    """The launches of one operation, as kept."""
    data = _loaded(ACCOUNTS)
    kept = "whole twiddles" if of == "together" else of
    one, several = (
        records_of(data["columns"], data[f"{operation}; {kept}; {n}"]) for n in ("one", "several")
    )
    apart = of in APART and operation == "bootstrap"
    return gpus.Accounts(one, several, apart=apart, alone=of == "today")


def latency(operation: str, of: str, count: int) -> float:
    """Microseconds of an operation by the model, its limbs gathered over so many GPUs."""
    made = analyze.load_ceilings(), gpus.load_links(), load_launch_times()
    ring_dim = _loaded(ACCOUNTS)["ring_dim"]
    return 1e6 * gpus.divided(accounts(operation, of), ring_dim, count, "gathered", *made).latency


def _parts(device: str) -> int:
    """2 of cuda:0+1."""
    return device.count("+") + 1


def _head(name: str) -> tuple[str, str, str]:
    p = _loaded(name)["provenance"]
    card = p["device_description"].partition("each: ")[2] or p["device_description"]
    return name, p["date"][:16], card.split(", compute")[0]


def of_parts(name: str) -> bool:
    """Is it a record of parts of one GPU?"""
    return any("/" in device for device in _loaded(name)["devices"])


def parts_table() -> str:
    """Pools of parts of one GPU against all of it."""
    rows, said = [], {}
    for file in sorted(RESULTS.glob("pool-*.json")):
        data = _loaded(file.name)
        if not of_parts(file.name):
            continue
        _, day, card = _head(file.name)
        commit = data["provenance"]["commit"][:10]
        said[f"one {card}, `{file.name}`, commit {commit}, {day[:10]}"] = None
        measured = [r for r in data["results"] if "rate" in r]
        for row in measured:
            if row["devices"] != len(data["devices"]):
                continue
            same = ("name", "params", "together")
            whole = next(r for r in measured if "device" in r and all(r[k] == row[k] for k in same))
            what = {"nand": "gates"}.get(row["name"], row["name"] + "s") + f" a second, `{row['params']}`"
            what += f", {row['together']} together" if row["together"] else ""
            rows.append(
                [what, number(whole["rate"]), str(row["devices"]), number(row["rate"])]
                + [f"{row['times_one_device']:.3f}"]
            )
    if not rows:
        return ""
    header = ["what", "all of it", "parts", "all parts at once", "times"]
    return f"{table(header, rows)}\nMeasured: {'; '.join(said)}."


def pools() -> Iterator[Compared]:
    """Bootstraps and gates a second of pools. One GPU's time is the record's: copies are what is compared."""
    for file in sorted(RESULTS.glob("pool-*.json")):
        if of_parts(file.name):
            continue
        rows = [r for r in _loaded(file.name)["results"] if "rate" in r]
        for row in rows:
            if row["devices"] == 1:
                continue
            same = ("name", "params", "together")
            alone = next(r for r in rows if r["devices"] == 1 and all(r[k] == row[k] for k in same))
            if (row["name"], row["params"]) == BOOTSTRAP:
                what, model = _spread_bootstraps(row, alone)
            elif row["name"] == "nand":
                what, model = f"gates a second, {_set(row).name}", _spread_gates(row, alone)
            else:
                continue
            yield Compared(*_head(file.name), row["devices"], what, "times", row["times_one_device"], model)


BOOTSTRAP = ("bootstrap", "boot40")


def _spread_bootstraps(row: Json, alone: Json) -> tuple[str, float]:
    each, together = row["things"] // row["devices"], row["together"]
    one = alone["seconds"] / alone["things"]
    what = "bootstraps a second" + (f", {together} together" if together > 1 else "")
    return what, gpus.spread(one, *BYTES, row["devices"], each, gpus.load_links()).speedup


def _spread_gates(row: Json, alone: Json) -> float:
    each = row["things"] // row["devices"]
    nbytes = gpus_gates.account(_set(row), each).nbytes
    made = gpus.load_links(), analyze.load_ceilings()
    return gpus.spread_gates(alone["seconds"], nbytes, row["devices"], each, *made).speedup


def _set(row: Json) -> tfhe.Params:
    """By what it is: names may go to other sets."""
    sets = (tfhe.preset(name, allow_insecure=True) for name in tfhe.preset_names())
    return next(p for p in sets if p.id == row["params_id"])


def _fastest(rows: list[Json], of_file: str) -> Iterator[Json]:
    """Whichever was faster, what was queued launch by launch or its replay."""
    found: dict[tuple[Any, ...], Json] = {}
    for row in rows:
        count = _parts(row.get("device", of_file))
        if row.get("timing", "queued") != "queued":
            continue
        key = row["name"], row.get("limbs"), row["batch"], count, row.get("exchange")
        if key not in found or row["latency_us"] < found[key]["latency_us"]:
            found[key] = row
    yield from found.values()


def split() -> Iterator[Compared]:
    """One ciphertext on one GPU and on several; of batches how many times faster several GPUs are alone."""
    for file in sorted(RESULTS.glob("split-*.json")):
        data = _loaded(file.name)
        head, of = _head(file.name), forms(file.name)
        of_file = data["provenance"]["device"]
        kept = {name.partition(";")[0] for name in _loaded(ACCOUNTS)}
        alone: dict[str, float] = {}
        for row in _fastest(data["results"], of_file):
            name = row["name"] + (f", {row['limbs']} limbs" if row["name"] != "bootstrap" else "")
            if row["params"] != "boot40" or name not in kept:
                continue
            count = _parts(row.get("device", of_file))
            events = "the model's GPUs meet inside kernels" if row.get("exchange") == "events" else ""
            elsewhere = f"launches were counted on the {COUNTED_ON}" if head[2] != COUNTED_ON else ""
            many = "the model is of one ciphertext" if row["batch"] > 1 else ""
            why = elsewhere or many or events or ("its launches are not kept" if of == "older" else "")
            what = name + (f", by {row['exchange']}" if "exchange" in row else "")
            what += f", {row['batch']} together" if many else ""
            model = None if why else latency(name, of, count)
            yield Compared(*head, count, what, "us", row["latency_us"], model, why)
            if count == 1:
                alone[name] = row["latency_us"]
            elif name in alone:
                model = None if many or events else latency(name, of, 1) / latency(name, of, count)
                faster = alone[name] / row["latency_us"]
                yield Compared(*head, count, what, "faster", faster, model, many or events)


def compared() -> list[Compared]:
    """All, the newest record first."""
    found = [*pools(), *split()]
    return sorted(found, key=lambda c: (c.date, c.file), reverse=True)


def worst(found: list[Compared], unit: str, most: int = 1 << 30) -> float:
    """The largest deviation either way."""
    told = [abs(c.deviation) for c in found if c.deviation is not None and c.unit == unit and c.gpus <= most]
    return max(told)


def measured_table() -> str:
    """For people, newest record first."""
    header = ["GPUs", "what", "measured", "model", "its time is", "launches", "record"]
    rows = []
    for c in compared():
        model = c.why_not if c.model is None else _shown(c.model, c.unit)
        if c.unit == "faster" and c.model and c.card != COUNTED_ON:
            model += f" on the {COUNTED_ON}"
        off = "" if c.deviation is None else f"{100 * c.deviation:+.1f} %"
        of = "" if c.unit == "times" else forms(c.file)
        measured = _shown(c.measured, c.unit)
        rows.append([f"{c.gpus} x {c.card}", c.what, measured, model, off, of, f"`{c.file}`"])
    rate, time, faster = (f"{100 * AT_MOST[unit]:g} %" for unit in ("times", "us", "faster"))
    tested = prose(
        f"""A test compares every record with the model, and fails where it is more than {rate} off a rate,
        {time} off a time, or {faster} off how many times faster several GPUs are than one."""
    )
    known = _loaded(ACCOUNTS)["forms"]
    of_today = any(c.unit != "times" and forms(c.file) == "today" for c in compared())
    launches = prose(
        f"""Launches: "today", those of this library{"" if of_today else ", of which there is no record yet"};
        "whole twiddles", of {known["whole twiddles"]}; "together", that and {known["together"]}; "earlier",
        that and {known["earlier"]}; "older", {known["older"]}. The model is given the launches that a record
        is of."""
    )
    return f"{table(header, rows)}\n{launches}\n{tested}"


def _shown(value: float, unit: str) -> str:
    return f"{number(value)} us" if unit == "us" else f"{value:.3f} times one"


def predicted_table() -> str:
    """What the model says of GPUs of one host, and how far it was from what was measured."""
    model = _loaded("gpus-boot40-model.json")
    one = model["one"]["model"]
    rows = []
    for spread in model["spread"]:
        limbs = next(r for r in model["divided"] if (r["gpus"], r["way"]) == (spread["gpus"], "gathered"))
        parts = [f"{1e3 * limbs[k]:.2f}" for k in ("latency", "compute", "links")]
        rows.append(
            [str(spread["gpus"]), f"{spread['rate']:,.0f}", f"{spread['speedup']:.2f}", *parts]
            + [f"{one / limbs['latency']:.2f}"]
        )
    header = ["GPUs", "bootstraps a second", "times one", "ms of one", "of it compute", "links", "times one"]
    found = compared()
    most = max(c.gpus for c in found)
    off = [100 * worst(found, unit) for unit in ("times", "us", "faster")]
    error = prose(
        f"""Error: on up to {most} GPUs, all that was measured, the model, given the launches that each record
        is of, was off by at most {off[0]:.1f} % of a pool's rate, {off[1]:.1f} % of the time of one
        ciphertext's limbs and {off[2]:.1f} % of how many times faster they are than one GPU (the
        [records](#model-and-measurement)). More GPUs than {most} were not measured, and nothing says that it
        is as near there."""
    )
    one_gpu, several = model["one"]["launches"], model["one"]["launches_of_several"]
    counted = _loaded("launches-boot40-h200.json")
    launches = prose(
        f"""A bootstrap has {one_gpu} launches on one GPU and {several} as several queue them, which exchange
        what a division drops as key switches wrote it (two do not in EvalMod, where each has a half by
        itself). Times of kernels are fitted to the
        {len(counted["launches"])} launches of one bootstrap that were counted one by one on one {COUNTED_ON}
        before keys for aligned levels, with whole twiddles, which took {1e-3 * counted["whole_us"]:.2f} ms:
        one GPU of today is the model's, too."""
    )
    return f"{table(header, rows)}\n{launches}\n{error}"


def gates_table() -> str:
    """What the model says of a pool's gates."""
    model = _loaded(GATES)
    rows = []
    for r in model["spread"]:
        ms = [f"{1e3 * r[k]:.2f}" for k in ("compute", "copies", "within")]
        rows.append([str(r["gpus"]), f"{r['batch']:,}", f"{r['rate']:,.0f}", f"{r['speedup']:.2f}", *ms])
    one = model["one"]
    what = prose(
        f"""Gates of `{model["params"]}` in arrays of {one["each"]:,} a GPU: {one["nbytes"] / 1e6:.0f} MB a
        share of an array, {one["keys"] / 1e6:.0f} MB of keys on every GPU. One GPU: {model["rate_from"]}."""
    )
    header = ["GPUs", "gates of an array", "a second", "times one", "ms of gates", "ms of links"]
    return f"{what}\n{table([*header, 'ms of copies on the first GPU'], rows)}"


def newest() -> str:
    """Of each card and number of GPUs the newest record of a bootstrap, in a sentence; the newest first."""
    found = [c for c in compared() if c.what.startswith("bootstrap, by") and c.gpus > 1]
    text = []
    for card, count in dict.fromkeys((c.card, c.gpus) for c in found):
        own = [c for c in found if (c.card, c.gpus) == (card, count)]
        times = [
            c for c in own if (c.date[:10], c.unit) == (own[0].date[:10], "us") and "together" not in c.what
        ]
        best = min(times, key=lambda c: c.measured)
        one = next(c for c in compared() if (c.file, c.what, c.gpus) == (best.file, "bootstrap", 1))
        faster = next(c for c in found if (c.file, c.what, c.unit) == (best.file, best.what, "faster"))
        said = f"says {faster.model:.2f}" if faster.model else f"says nothing: {faster.why_not}"
        timed = "" if card == COUNTED_ON else f", as timed on the {COUNTED_ON},"
        start = "Newest" if not text else f"Newest of {count} x {card}"
        text.append(
            prose(
                f"""{start}: a bootstrap of `boot40` on {best.gpus} x {card} in
                {number(best.measured / 1e3)} ms, {number(one.measured / 1e3)} on one: **{faster.measured:.2f}
                times** (`{best.file}`, {best.date[:10]}, with {_of_launches(best.file)}); the model of
                these launches{timed} {said}."""
            )
        )
    return "\n".join(text)


def _of_launches(file: str) -> str:
    return "today's launches" if forms(file) == "today" else f'launches "{forms(file)}"'
