"""The model against kernels that no parameter was fitted to, and the criterion that guards every prediction.

usage: validate.py FOLDER [--target h200] [--out FILE]     FOLDER: collect.py's files, unpacked

Criterion: at least 12 kernels; mean absolute error of cycles at most 15 %, worst 30 %;
Pearson correlation at least 0.97; kernels of one family keep their order; instruction counts of trace,
profiler (by instruction, by opcode) and, where known, shape alone agree within 0.1 %, and with the
hardware's own counter, which is taken in another pass, within 1 %. Whole operations: 15 %, reported.
`require` is what reports call before they print anything about FHECore.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from . import engine, params, profiles, static, trace

ENOUGH, MEAN, WORST, PEARSON, ORDER = 12, 0.15, 0.30, 0.97, 0.10
COUNTS, HARDWARE = 1e-3, 1e-2
# Rounds of the loops of kernels/ as unit.cu launches them: counts from SASS and shape alone.
STATIC = {"columns": (1,), "rows": (1, 2)}


class NotValidated(RuntimeError):
    """There is no validation, or it is outside the criterion: no prediction may be printed."""


def compare(
    launch: profiles.Profiled, case: str, values: dict[str, float], program: Path | None = None
) -> dict:
    """One launch: cycles of model and hardware, and its instruction count from every source there is."""
    walk = launch.walk()
    walk.check()
    text = trace.text(walk, int(values["sms"]))
    result = engine.run(text, params.of_engine(values), program)
    total = sum((b.last - b.first) * n for b, n in zip(launch.function.blocks, walk.total(), strict=True))
    model = result["cycles"] + values["kernel_cycles"]
    counted = launch.instructions
    sources = {"trace": total, "by_instruction": sum(launch.executed)}
    if launch.opcodes:
        sources["by_opcode"] = sum(launch.opcodes.values())
    if launch.name in STATIC:
        blocks = static.counts(launch.function, walk.launch, STATIC[launch.name])
        sources["static"] = static.total(launch.function, blocks)
    return {
        "case": case, "kernel": launch.name, "grid": launch.grid, "model": model, "measured": launch.cycles,
        "error": model / launch.cycles - 1, "instructions": counted, "sources": sources,
"count_error": max(sources.values()) / min(sources.values()) - 1,
        "hardware_error": counted / sources["by_instruction"] - 1,
        "issue_idle": result["idle_cycles"] / max(1, result["cycles"]), "stalled": result["stalled"],
    }  # fmt: skip


def pearson(x: list[float], y: list[float]) -> float:
    """Correlation; 0 where one side does not vary."""
    n = len(x)
    mx, my = sum(x) / n, sum(y) / n
    sxy = sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True))
    sxx, syy = sum((a - mx) ** 2 for a in x), sum((b - my) ** 2 for b in y)
    return sxy / (sxx * syy) ** 0.5 if sxx and syy else 0.0


def swapped(rows: list[dict]) -> list[tuple[str, str]]:
    """Pairs of launches of one kernel, measured more than 10 % apart, that the model puts in the other
    order."""
    out = []
    for i, a in enumerate(rows):
        for b in rows[i + 1 :]:
            apart = abs(a["measured"] - b["measured"]) > ORDER * max(a["measured"], b["measured"])
            reversed_ = (a["measured"] - b["measured"]) * (a["model"] - b["model"]) < 0
            if a["kernel"] == b["kernel"] and apart and reversed_:
                out.append((a["case"], b["case"]))
    return out


def judge(rows: list[dict]) -> dict:
    """The criterion on compared launches."""
    errors = [abs(r["error"]) for r in rows]
    distinct = len({(r["case"], r["kernel"]) for r in rows})
    figures = {
        "kernels": distinct,
        "without_opcodes": sorted({r["case"] for r in rows if "by_opcode" not in r["sources"]}),
        "mean": sum(errors) / len(errors) if errors else None,
        "worst": max(errors, default=None),
        "pearson": pearson([r["measured"] for r in rows], [r["model"] for r in rows])
        if len(rows) > 1
        else 0.0,
        "worst_count_error": max((r["count_error"] for r in rows), default=None),
        "worst_hardware_error": max((abs(r["hardware_error"]) for r in rows), default=None),
        "swapped": swapped(rows),
    }
    failures = []
    if distinct < ENOUGH:
        failures.append(f"{distinct} kernels, {ENOUGH} needed")
    if errors:
        checks = (
            ("mean", MEAN), ("worst", WORST), ("worst_count_error", COUNTS), ("worst_hardware_error",
            HARDWARE),
        )  # fmt: skip
        failures += [f"{n} {figures[n]:.4f} above {limit}" for n, limit in checks if not figures[n] <= limit]
    if not figures["pearson"] >= PEARSON:
        failures.append(f"correlation {figures['pearson']:.3f} below {PEARSON}")
    if figures["without_opcodes"]:
        failures.append(f"no counts by opcode of {figures['without_opcodes']}")
    if figures["swapped"]:
        failures.append(f"order of {figures['swapped']}")
    return {**figures, "failures": failures, "passed": not failures}


def expected_launches(cases: list[dict]) -> list[str]:
    """Case of every profiled launch, in order."""
    return [c["name"] for c in cases for _ in c.get("launches", [None])]


def load(folder: Path, part: str) -> list[tuple[str, profiles.Profiled]]:
    """(case, launch) of one profile; ProfileError when case list and profile do not have the same
    launches."""
    listing = "unit" if part == "unit" else "heldout"
    launches = profiles.read(
        folder / f"{part}.profile.json.gz", folder / f"{listing}.sass.gz", folder / f"{listing}.usage.txt"
    )
    cases = expected_launches(json.loads((folder / f"{part}.cases.json").read_text())["cases"])
    if len(cases) != len(launches):
        raise profiles.ProfileError(
            f"{part}: {len(launches)} launches profiled, {len(cases)} in the case list"
        )
    return list(zip(cases, launches, strict=True))


def require(target: str = "h200", folder: Path = params.DATA) -> dict:
    """The validation of a target. NotValidated unless calibration and validation are there and passed."""
    calibration = params.calibration(target, folder)
    path = folder / f"validation-{target}.json"
    if calibration is None:
        raise NotValidated(f"not measured: no calibration of {target} in {folder}")
    if not path.exists():
        raise NotValidated(f"not measured: no validation of {target} in {folder}")
    validation = json.loads(path.read_text())
    if not calibration.get("passed"):
        raise NotValidated(
            f"calibration of {target} is outside its tolerance: worst {calibration.get('worst')}"
        )
    if validation.get("fingerprint") != engine.fingerprint(calibration):
        raise NotValidated(
            f"validation of {target} is of another model, parameters or calibration: validate again"
        )
    again = judge(validation["rows"])  # what is stored as passed must follow from the rows
    if not again["passed"]:
        raise NotValidated(f"model of {target} outside the criterion: {'; '.join(again['failures'])}")
    return {**validation, **again}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="h200")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args(arguments)
    if params.calibration(args.target) is None:
        print(f"not measured: calibrate {args.target} first", file=sys.stderr)
        return 1
    values = params.load(args.target)
    program = engine.build()
    held_out = load(args.folder, "kernels")
    # The transform on today's tensor cores. The stubs stay out: what NANOSLEEP, a mark, costs is not known.
    held_out += [x for x in load(args.folder, "unit") if x[0] in ("imma_columns", "imma_rows")]
    rows = [compare(launch, case, values, program) for case, launch in held_out]
    verdict = judge(rows)
    facts = json.loads((args.folder / "facts.json").read_text())["facts"]
    for r in rows:
        print(
            f"{r['case']:<18}{r['kernel']:<18}{r['measured']:>9.0f}{r['model']:>9.0f}"
            f"{100 * r['error']:>8.1f} %"
        )
    print(json.dumps({k: v for k, v in verdict.items() if k != "swapped"}, indent=1))
    out = args.out or params.DATA / f"validation-{args.target}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    fingerprint = engine.fingerprint(params.calibration(args.target))
    data = {"kind": "fhecore-validation", "target": args.target, "fingerprint": fingerprint, "facts": facts,
            "rows": rows, **verdict}  # fmt: skip
    out.write_text(json.dumps(data, indent=1) + "\n")
    return 0 if verdict["passed"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
