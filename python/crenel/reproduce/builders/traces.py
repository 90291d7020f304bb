"""The traces that FHECore's model has: which kernels they are, and composed times beside runs of today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crenel.reproduce.builders import common
from crenel.reproduce.outcome import Work
from crenel.reproduce.registry import Cell, number
from crenel.reproduce.results import Found, Results

US_PER_MS = 1e3
LONG = 40  # characters of polynomials that a cell has room for


def sums(classes: Mapping[str, Any], key: str) -> float | None:
    """Milliseconds of all classes; None where one has no time."""
    values = [c.get(key) for c in classes.values()]
    return sum(values) / US_PER_MS if values and None not in values else None


def traced(results: Results) -> str:
    """Commit and date of the traced kernels; of a collection that wrote none, those that it is kept with."""
    for _, data in results.of_kind("fhecore-session"):
        own = data["facts"] if "commit" in data["facts"] else data.get("archived", {})
        if own:
            what = "" if own is data["facts"] else "archive kept with "
            return f"{what}commit {str(own['commit'])[:10]}, {str(own['date'])[:10]}"
    return "a commit that no record names"


def remark(work: Work, classes: Mapping[str, Any]) -> None:
    """Which kernels "this library's" are, and what became of them."""
    whole = sums(classes, "us")
    if whole is None:
        return
    text = (
        f"This library's kernels are those of the traces ({traced(work.results)}), where base conversion"
        f" computes by wide products and one bootstrapping of boot40 is {whole:.1f} ms of kernels on an H200."
    )
    last = common.boots(work.results, "boot40").get("NVIDIA H200")
    if last is not None:
        ms = number(last.row["latency_us"]) / US_PER_MS
        text += (
            " Since then conversions run on the matrix units, in one launch with the column pass of their"
            f" results: {ms:.3g} ms on the same card ({_made(last)}). These kernels were not traced again."
        )
    work.remark(text)


def _made(found: Found) -> str:
    """Commit and date of a run."""
    return f"commit {str(found.provenance.get('commit', ''))[:10]}, {found.date[:10]}"


def check(work: Work, record: Mapping[str, Any]) -> None:
    """Composed times beside runs of the same workloads, which are of later kernels and other cards."""
    rows: list[tuple[Cell, ...]] = []
    for w in record["workloads"]:
        composed = sums(w["classes"], "us")
        for f, ms in _runs(work, w["name"], record["params"]):
            work.take(f)
            over = composed / ms if composed and f.row["params"] == record["params"] else None
            what = str(f.row.get("activation", f"{f.row['steps']} iterations"))
            if len(what) > LONG:
                what = "as compiled"
            rows.append((w["title"], composed, record["params"], ms, f.device, str(f.row["params"]), what,
                         _made(f), over))  # fmt: skip
    columns = (
        "workload", "composed, H200, ms", "set", "measured, ms", "on", "set", "polynomials",
        "measured at", "composed over measured",
    )  # fmt: skip
    work.table("the composed times without the unit beside runs, as a check", columns, rows)
    if rows:
        work.remark(
            "Where a measured run has the composed one's set and polynomials, the quotient says how far apart"
            " both are; it holds the model's error and three changes: later kernels, a card with the same"
            " multiprocessors and slower memory where it is an H100, trained weights in place of random ones."
        )


def _runs(work: Work, name: str, params: str) -> list[tuple[Found, float]]:
    """(run, ms) of a workload on each device and set: eager, of one input, the newest."""
    out = []
    if name == "lr":
        for f, time, _ in common.helr(work.results, params).values():
            out.append((f, time / US_PER_MS * float(f.row["steps"])))
        return out
    last: dict[tuple[str, str], Found] = {}
    for f in work.results.rows("workload", name="network", network=name, batch=1, graph=False):
        key = f.device, str(f.row["params"])
        single = "," not in str(f.row["activation"]) or name != "resnet20"
        if not f.row.get("simulated") and single and (key not in last or f.date > last[key].date):
            last[key] = f
    same = [f for f in last.values() if f.row["params"] == params]
    return [(f, number(f.row["latency_us"]) / US_PER_MS) for f in same or last.values()]
