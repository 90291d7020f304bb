"""A whole bootstrapping from its kernels: counts and times by class, and over the numbers of FFT
iterations.

Every launch of a real run was counted by the profiler. A kernel that the unit changes is scaled by its
ratio in HEMult at 47 limbs. Other numbers of iterations are composed from what sweep.py states
(launches of a device that executes nothing) and the real run's cost a unit of work: labelled so wherever it
is printed.
"""

from __future__ import annotations

import csv
from collections.abc import Callable

CLASSES = {
    "NTT": ("row_forward", "column_forward"), "INTT": ("row_inverse", "column_inverse"),
    "base conversion": ("base_convert",), "NTT with key product": ("key_switch_rows",),
    "NTT with division": ("row_divide",), "automorphism": ("automorphism_eval", "automorphism_coeff"),
}  # fmt: skip
# Where the account names a launch after the operation and not after its function.
FUNCTION = {
    **dict.fromkeys(("add", "sub", "mul", "mul_add"), "binary"),
    **dict.fromkeys(("neg", "mul_scalar", "mul_add_scalar", "add_scalar"), "scalar"),
    **dict.fromkeys(("automorphism", "automorphism_add"), "automorphism_eval"),
}
# Kernels whose work is their products; that of the others is limbs times polynomials.
BY_PRODUCTS = ("base_convert", "hoisted_sums", "linear_combination")
SAME = {"instructions": 1.0, "us": 1.0}


class ComposeError(ValueError):
    """An operation whose launches are not those of the plan; the message names the first that differs."""


def class_of(kernel: str) -> str:
    return next((name for name, kernels in CLASSES.items() if kernel in kernels), "element-wise and other")


def read_launches(csv_text: str) -> list[dict]:
    """Of the profiler's CSV with smsp__inst_executed.sum and gpu__time_duration.sum (ns) a launch."""
    launches: dict[str, dict] = {}
    for row in csv.DictReader(line for line in csv_text.splitlines() if line.startswith('"')):
        name = row["Kernel Name"].split("(")[0].split("<")[0].removeprefix("void ").split("::")[-1]
        entry = launches.setdefault(row["ID"], {"kernel": name})
        entry[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    if not launches:
        raise ComposeError("bootstrap: the profiler's CSV has no launch")
    return list(launches.values())


def bootstrap(
    csv_text: str, ratios: dict[str, dict[str, float]], slower: Callable[[str], float] = lambda _: 1.0
) -> dict:
    """Sums by class without and with the unit; `slower`: times of a kernel on another GPU, of these."""
    launches = read_launches(csv_text)
    by_class: dict[str, dict[str, float]] = {}
    for entry in launches:
        zero = {"launches": 0, "base": 0, "with": 0, "us": 0, "with_us": 0}
        own = by_class.setdefault(class_of(entry["kernel"]), zero)
        ratio = ratios.get(entry["kernel"], SAME)
        instructions, us = (
            entry["smsp__inst_executed.sum"],
            slower(entry["kernel"]) * entry["gpu__time_duration.sum"] / 1e3,
        )
        own["launches"] += 1
        own["base"] += instructions
        own["with"] += instructions * ratio["instructions"]
        own["us"] += us
        own["with_us"] += us * ratio["us"]
    return {"launches": len(launches), "classes": by_class}


def without_times(predictions: dict) -> dict:
    """Bootstrapping and sweep with their instruction counts alone."""
    times = ("us", "with_us")

    def stripped(row: dict) -> dict:
        return {k: v for k, v in row.items() if k not in times}

    out = dict(predictions)
    if "bootstrap" in out:
        classes = {k: stripped(v) for k, v in out["bootstrap"]["classes"].items()}
        out["bootstrap"] = {**out["bootstrap"], "classes": classes}
    if "sweep" in out:
        out["sweep"] = [stripped(row) for row in out["sweep"]]
    return out


def work_of(kernel: str, limb_polys: float, multiply_adds: float) -> float:
    return multiply_adds if kernel in BY_PRODUCTS else limb_polys


def costs(csv_text: str, records: list[dict]) -> dict[str, tuple[float, float]]:
    """(instructions, us) a unit of work of every kernel, from the real run and its account."""
    sums: dict[str, list[float]] = {}
    for entry in read_launches(csv_text):
        own = sums.setdefault(entry["kernel"], [0.0, 0.0, 0.0])
        own[0] += entry["smsp__inst_executed.sum"]
        own[1] += entry["gpu__time_duration.sum"] / 1e3
    for r in records:
        if r["work"] == "copy":
            continue
        kernel = FUNCTION.get(r["kernel"], r["kernel"])
        if kernel not in sums:
            raise ComposeError(f"bootstrap: {kernel} is in the account, but was not profiled")
        sums[kernel][2] += work_of(kernel, r["limbs"] * r["polys"], r["multiply_adds"])
    return {k: (n / work, us / work) for k, (n, us, work) in sums.items() if work}


def sweep(stated: dict, unit_costs: dict, ratios: dict[str, dict[str, float]]) -> list[dict]:
    """Instructions and kernel times for every choice of factors in what sweep.py wrote."""
    out = []
    for choice in stated["sweep"]:
        row = {k: choice[k] for k in ("coeff_to_slot", "slot_to_coeff", "levels_left")}
        row |= {"base": 0.0, "with": 0.0, "us": 0.0, "with_us": 0.0}
        for name, (_, limb_polys, multiply_adds) in choice["kernels"].items():
            kernel = FUNCTION.get(name, name)
            if kernel not in unit_costs:
                raise ComposeError(f"sweep: no cost of {kernel} from the real run")
            instructions, us = (c * work_of(kernel, limb_polys, multiply_adds) for c in unit_costs[kernel])
            ratio = ratios.get(kernel, SAME)
            row["base"] += instructions
            row["with"] += instructions * ratio["instructions"]
            row["us"] += us
            row["with_us"] += us * ratio["us"]
        out.append(row)
    return out
