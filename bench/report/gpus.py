"""What several GPUs were measured at, beside what the model of `crenel.gpus` says of the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from crenel import analyze, gpus
from crenel.account import Record
from crenel.launch_times import load_launch_times, records_of
from report.gpus_plan import prose
from report.text import number, table

RESULTS = Path(__file__).resolve().parents[1] / "results"
ACCOUNTS = "gpus-accounts-boot40.json"
BYTES = (1 << 20, 9961472)  # of a ciphertext that boot40 takes, and of one that it gives
COUNTED_ON = "NVIDIA H200"
Json = dict[str, Any]


@dataclass(frozen=True)
class Compared:
    """One measurement, and the model's figure where it has one. Times are in us, `times` against one GPU."""

    file: str
    date: str
    card: str
    gpus: int
    what: str
    unit: str
    """"times": of one GPU's rate; "us": the time of one."""
    measured: float
    model: float | None
    why_not: str = ""

    @property
    def deviation(self) -> float | None:
        """Of the model's time from that measured; above zero: it is said to take longer than it does."""
        if self.model is None:
            return None
        ratio = self.model / self.measured
        return (1 / ratio if self.unit == "times" else ratio) - 1


@cache
def _loaded(name: str) -> Json:
    found: Json = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found


@cache
def account(name: str) -> tuple[Record, ...]:
    """The launches of one operation on one GPU, as kept."""
    data = _loaded(ACCOUNTS)
    return tuple(records_of(data["columns"], data[name]))


def latency(operation: str, file: str, count: int) -> float:
    """Microseconds of an operation by the model, its limbs gathered over so many GPUs."""
    data = _loaded(ACCOUNTS)
    name = operation + (", without" if file in data["records_without"] else "")
    made = analyze.load_ceilings(), gpus.load_links(), load_launch_times()
    return 1e6 * gpus.divided(account(name), data["ring_dim"], count, "gathered", *made).latency


def _parts(device: str) -> int:
    """2 of cuda:0+1."""
    return device.count("+") + 1


def _head(name: str) -> tuple[str, str, str]:
    p = _loaded(name)["provenance"]
    card = p["device_description"].partition("each: ")[2] or p["device_description"]
    return name, p["date"][:16], card.split(", compute")[0]


def pools() -> Iterator[Compared]:
    """Bootstraps a second of pools. One GPU's time is the record's own: links are what is compared."""
    links = gpus.load_links()
    for file in sorted(RESULTS.glob("pool-*.json")):
        rows = [r for r in _loaded(file.name)["results"] if (r["name"], r.get("params")) == BOOTSTRAP]
        for row in rows:
            if row["devices"] == 1:
                continue
            together = row["together"]
            alone = next(r for r in rows if (r["devices"], r["together"]) == (1, together))
            each = row["things"] // row["devices"]
            one = alone["seconds"] / alone["things"]
            model = gpus.spread(one, *BYTES, row["devices"], each, links).speedup
            what = "bootstraps a second" + (f", {together} together" if together > 1 else "")
            yield Compared(*_head(file.name), row["devices"], what, "times", row["times_one_device"], model)


BOOTSTRAP = ("bootstrap", "boot40")


def split() -> Iterator[Compared]:
    """One ciphertext on one GPU and on several, queued launch by launch."""
    for file in sorted(RESULTS.glob("split-*.json")):
        data = _loaded(file.name)
        head = _head(file.name)
        of_file = data["provenance"]["device"]
        for row in data["results"]:
            name = row["name"] + (f", {row['limbs']} limbs" if row["name"] != "bootstrap" else "")
            if row["graph"] or row["params"] != "boot40" or name not in _loaded(ACCOUNTS):
                continue
            count = _parts(row.get("device", of_file))
            why = ""
            if head[2] != COUNTED_ON:
                why = f"launches were counted on the {COUNTED_ON}"
            elif row.get("exchange") == "events":
                why = "the model's GPUs meet inside kernels"
            # One GPU has all forms, whatever several lack.
            model = None if why else latency(name, file.name if count > 1 else "", count)
            what = name + (f", by {row['exchange']}" if "exchange" in row else "")
            yield Compared(*head, count, what, "us", row["latency_us"], model, why)


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
    header = ["GPUs", "what", "measured", "model", "its time is", "record"]
    rows = []
    for c in compared():
        model = c.why_not if c.model is None else _shown(c.model, c.unit)
        off = "" if c.deviation is None else f"{100 * c.deviation:+.1f} %"
        measured = _shown(c.measured, c.unit)
        rows.append([f"{c.gpus} x {c.card}", c.what, measured, model, off, f"`{c.file}`"])
    return table(header, rows)


def _shown(value: float, unit: str) -> str:
    return f"{value:.3f} times one" if unit == "times" else f"{number(value)} us"


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
    off = [100 * worst(found, unit) for unit in ("times", "us")]
    error = prose(
        f"""Error: on up to {most} GPUs, all that was measured, the model was off by at most {off[0]:.1f} %
        of a pool's rate and {off[1]:.1f} % of the time of one ciphertext's limbs (the next table). More
        GPUs than {most} were not measured, and nothing says that it is as near there."""
    )
    return f"{table(header, rows)}\n{error}"


def newest() -> str:
    """The newest record of one bootstrap on several GPUs, in a sentence."""
    found = [c for c in compared() if c.what.startswith("bootstrap, by") and c.gpus > 1 and c.model]
    best = min((c for c in found if c.date[:10] == found[0].date[:10]), key=lambda c: c.measured)
    one = next(c for c in compared() if (c.file, c.what, c.gpus) == (best.file, "bootstrap", 1))
    same = latency("bootstrap", "", 1) / (best.model or 1.0)
    return prose(
        f"""Newest: a bootstrap of `boot40` on {best.gpus} x {best.card} in {number(best.measured / 1e3)}
        ms, {number(one.measured / 1e3)} on one: **{one.measured / best.measured:.2f} times**
        (`{best.file}`); by the model of the same launches {same:.2f}."""
    )
