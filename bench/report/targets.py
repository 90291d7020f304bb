"""The figures that the project set out to reach (bench/results/targets.json), and what was measured: met, not
met, or blank.
"""

from __future__ import annotations

from report.kernels import PEER_KERNEL, ceilings_of, fraction, mebibytes
from report.text import NEAR, SERVER, duration, number, table

ABOUT = """
Operations: measured at the nearest number of limbs that the parameters have, which is given, and as the
targets were: by events around single calls on the same inputs; beside it on inputs that take turns. The
kernels alone at exactly the number of the target, queued. Blank: not measured yet.
"""
KERNELS = {"ntt": "NTT", "base_convert": "Base conversion"}


def newest(found: list[tuple[str, dict, dict]]) -> tuple[str, dict, dict] | None:
    """Of (file, provenance, row): the last measured."""
    return max(found, key=lambda f: f[1].get("date", ""), default=None)


def bench_rows(files: dict[str, dict]) -> list[tuple[str, dict, dict]]:
    suites = [(n, d) for n, d in files.items() if d["kind"] == "crenel-bench"]
    return [(n, d["provenance"], r) for n, d in suites for r in d["results"]]


def yes(value: bool) -> str:
    return "yes" if value else "**no**"


def operation(target: dict, files: dict[str, dict], kernels: dict[str, list[dict]]) -> list[str]:
    same = {k: target[k] for k in ("name", "log_n", "alpha")} | {"batch": 1}
    found = [
        f
        for f in bench_rows(files)
        if target["device"] in f[1]["device_description"]
        and all(f[2].get(k) == v for k, v in same.items())
        and abs(f[2].get("limbs", 0) - target["limbs"]) <= NEAR
    ]
    distance = min((abs(f[2]["limbs"] - target["limbs"]) for f in found), default=0)
    found = [f for f in found if abs(f[2]["limbs"] - target["limbs"]) == distance]
    # The targets were taken by events around single calls on the same inputs: like for like.
    like = ("each", "same")
    eager = newest([f for f in found if (f[2].get("timing"), f[2].get("inputs")) == like])
    rotating = newest([f for f in found if f[2].get("inputs") == "rotating"])
    name = PEER_KERNEL.get(target["name"], target["name"])
    alone = [
        r["us"]
        for rows in kernels.values()
        for r in rows
        if (r["operation"], r["limbs"], r["log_n"]) == (name, target["limbs"], target["log_n"])
        and not r["graph"]
        and r["device"].startswith(target["device"])
    ]
    cells = [f"{f[2]['latency_us']:,.1f} us, {f[2]['limbs']} limbs" if f else "" for f in (eager, rotating)]
    met = yes(eager[2]["correct"] and eager[2]["latency_us"] <= target["at_most_us"]) if eager else ""
    return [
        f"{SERVER[target['name']]}, {target['limbs']} limbs, {target['device']}",
        f"<= {target['at_most_us']} us",
        *cells,
        f"{alone[-1]:,.1f} us" if alone else "",
        met,
        ", ".join(dict.fromkeys(f"`{f[0]}`" for f in (eager, rotating) if f)),
    ]


def kernel(target: dict, files: dict[str, dict], kernels: dict[str, list[dict]]) -> list[str]:
    """Traffic and its share of the L2 ceiling have to be reported: no limit."""
    cells = {False: "", True: ""}
    source = []
    for name, rows in kernels.items():
        for r in rows:
            if any(r["operation" if k == "name" else k] != target[k] for k in ("name", "log_n", "limbs")):
                continue
            ceilings = ceilings_of(r["device"], files)
            if r["device"].startswith(target["device"]) and ceilings:
                share = fraction(r, ceilings, "l2")
                cells[r["graph"]] = f"{mebibytes(r)} MiB, {number(r['gb_per_s'])} GB/s, {share} of L2"
                source.append(f"`{name}`")
    title = f"{KERNELS[target['name']]}, {target['limbs']} limbs, {target['device']}: traffic, share of L2"
    met = yes(True) if cells[False] else ""
    return [title, "reported", "", cells[True], cells[False], met, ", ".join(dict.fromkeys(source))]


def comparison(target: dict, files: dict[str, dict], _: dict) -> list[str]:
    """The other library's time over ours, in its faster way of scaling."""
    least, source = None, ""
    for name, data in files.items():
        if data["kind"] != "crenel-comparison":
            continue
        if (data["wheel"], data["threads"]) != (target["wheel"], target["threads"]):
            continue
        for case in data["cases"]:
            ratios = [v for k, v in case["ratio_of_medians"].items() if k.startswith(target["name"])]
            if case["log_n"] == target["log_n"] and ratios:
                least, source = min(ratios), f"`{name}`"
    title = f"HMult + relin. + rescale, N = 2^{target['log_n']}, {target['threads']} threads: time of "
    title += f"{target['wheel'].replace('==', ' ')} over Crenel's"
    measured = "" if least is None else f"{least:.2f}"
    met = "" if least is None else yes(least >= target["at_least"])
    return [title, f">= {target['at_least']}", measured, "", "", met, source]


# What a row must say as its target does, where that says it.
TOLD = ("name", "params", "batch", "count", "features", "variant", "graph", "stages_timed")


def setup(target: dict, files: dict[str, dict], _: dict) -> list[str]:
    same = {k: target[k] for k in TOLD if k in target}
    last = newest(
        [
            f
            for f in bench_rows(files)
            if f[1]["device"].split(":")[0] == target.get("device", f[1]["device"].split(":")[0])
            and all(f[2].get(k) == v for k, v in same.items())
        ]
    )
    measured = duration(last[2]["latency_us"]) if last else ""
    met = yes(last[2]["correct"] and last[2]["latency_us"] < target["below_us"]) if last else ""
    source = f"`{last[0]}`" if last else ""
    return [target["title"], f"< {target['below_us'] / 1e6:g} s", measured, "", "", met, source]


def targets_section(files: dict[str, dict], kernels: dict[str, list[dict]]) -> str:
    makers = {"operation": operation, "kernel": kernel, "comparison": comparison, "setup": setup}
    text = ""
    for data in files.values():
        if data["kind"] == "crenel-targets":
            body = [makers[t["from"]](t, files, kernels) for t in data["targets"]]
            header = ["figure", "target", "measured", "inputs that take turns", "kernels alone"]
            header += ["met", "source"]
            text += f"\n## Targets\n\nFrom {data['provenance']}.\n{ABOUT}\n" + table(header, body)
    return text
