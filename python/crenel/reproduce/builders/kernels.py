"""Single kernels under hardware counters: records of ``dev/kernels/counters.sh``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from crenel.reproduce.charts import Lines
from crenel.reproduce.outcome import Work
from crenel.reproduce.registry import Cell
from crenel.reproduce.results import short_device

TITLES = {"ntt": "NTT", "intt": "INTT", "base_convert": "base conversion"}
POLYNOMIALS = 2
"""Of a ciphertext: what limbs are varied at."""
WARP = 32
MB = 1e6


def _records(work: Work) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """(device, rows) of the newest record of each device, noted as a source."""
    newest: dict[str, tuple[str, str]] = {}
    for file, data in work.results.of_kind("crenel-kernel-counters"):
        device, date = short_device(data["provenance"]), str(data["provenance"].get("date", ""))
        newest[device] = max(newest.get(device, ("", "")), (date, file))
    for device, (_, file) in sorted(newest.items()):
        data = work.results.documents[file]
        commit = str(data["provenance"].get("commit", ""))[:10]
        work.source(file, f"{device}, commit {commit}: `{data['provenance']['command']}`")
        yield device, data["rows"]


def core_share(row: Mapping[str, Any]) -> Cell:
    """Core products over the threads' multiply-adds that hardware counted, in per cent."""
    counted = row["counters"].get("multiply_instructions")
    return 100 * row["stated"]["multiply_adds"] / (WARP * counted) if counted else None


def by_limbs(work: Work) -> bool:
    """How busy pipes, network and L2 are against the number of limbs. False: no record says."""
    columns = {
        "multiplier, %": "multiply_percent",
        "ALU, %": "alu_percent",
        "issue slots, %": "issue_percent",
        "network, read, %": "network_read_percent",
        "network, written, %": "network_write_percent",
        "L2, %": "l2_percent",
    }
    found = False
    for device, rows in _records(work):
        found = True
        own = [row for row in rows if row["polys"] == POLYNOMIALS]
        body: list[tuple[Cell, ...]] = []
        curves: dict[str, list[tuple[float, float]]] = {}
        for name, title in TITLES.items():
            for row in sorted((r for r in own if r["operation"] == name), key=lambda r: -r["limbs"]):
                seen = row["counters"]
                shares = [seen.get(key) for key in columns.values()]
                body.append((title, row["limbs"], seen["us"], *shares, core_share(row)))
                for pipe, key in (("multiplier", "multiply_percent"), ("network", "network_read_percent")):
                    if key in seen:
                        curves.setdefault(f"{title}, {pipe}", []).append((row["limbs"], seen[key]))
        work.table(
            f"ours, counted: {device}, two polynomials, N = 2^16",
            ("kernel", "limbs", "us", *columns, "core of the multiply-adds, %"), body,
        )  # fmt: skip
        if curves:
            points = {name: sorted(each) for name, each in curves.items()}
            work.chart(
                Lines(f"pipes and network by limbs, {device} (Fig. 2a)", "limbs", "% of the peak", points)
            )
    return found


def by_polynomials(work: Work) -> bool:
    """How busy L2 and memory are against the number of polynomials, at the most limbs. False: no record."""
    found = False
    for device, rows in _records(work):
        found = True
        most = max(row["limbs"] for row in rows)
        body: list[tuple[Cell, ...]] = []
        curves: dict[str, list[tuple[float, float]]] = {}
        for name, title in TITLES.items():
            for row in (r for r in rows if r["operation"] == name and r["limbs"] == most):
                seen = row["counters"]
                dram = (seen.get("dram_read_bytes", 0.0) + seen.get("dram_write_bytes", 0.0)) / MB
                each = seen["us"] / row["polys"]
                busy = [seen.get(key) for key in ("sm_percent", "l2_percent", "dram_percent")]
                body.append((title, row["polys"], each, *busy, dram / row["polys"]))
                if "l2_percent" in seen:
                    curves.setdefault(title, []).append((row["polys"], seen["l2_percent"]))
        columns = ("us each", "busy multiprocessors, %", "L2, %", "DRAM, %", "at DRAM, MB each")
        work.table(f"ours, counted: {device}, {most} limbs", ("kernel", "polynomials", *columns), body)
        if curves:
            title = f"L2 by polynomials, {most} limbs, {device} (Fig. 5)"
            work.chart(Lines(title, "polynomials", "% of the peak", curves, logx=2))
    return found
