#!/usr/bin/env python3
"""Launches of one bootstrap, each counted by itself, beside its account: bench/results/launches-NAME.json.

    tools/fit_launches.py count --counters ncu.csv --boot bench/results/boot40-h200-boot.json \\
        --date "$(date -I)" --json bench/results/launches-boot40-h200.json
    tools/fit_launches.py accounts --kept bench/results/gpus-accounts-boot40.json \\
        --whole-twiddles split-boot40-h200x2.json .. --together split-boot40-h100x2.json .. \\
        --earlier split-boot40-h200x2-events.json .. --older split-operations-h100.json \\
        --json bench/results/gpus-accounts-boot40.json
    tools/fit_launches.py fit bench/results/launches-boot40-h200.json   # the "launches" of ceilings.json

The counters are those of `crenel_bench_boot --once` (two eager bootstraps), from anywhere in the first:

    ncu --csv --metrics gpu__time_duration.sum --cache-control none --clock-control none \\
        --launch-skip 200 --launch-count 300 \\
        crenel_bench_boot --device cuda --params boot40 --once

A bootstrap's launches repeat, so that as many in a row as it has are all of it, turned. They are laid beside
the account of "cuda:dry" by the names of kernels and, where a grid tells them, by polynomials and limbs; what
does not fit is an error. That account is of today's launches, and so must be what is counted.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Kernels whose grids are (tiles, polynomials, limbs).
BY_LIMB = ("row_inverse", "column_inverse", "row_forward", "column_forward", "row_divide")
UNITS = {"ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3, "msecond": 1e3}
Json = dict[str, Any]


def counted(file: Path) -> list[tuple[str, tuple[int, ...], float]]:
    """Kernel, grid and microseconds of each launch."""
    lines = file.read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    found = []
    for row in csv.DictReader(lines[start:]):
        if row["Metric Name"] != "gpu__time_duration.sum":
            continue
        name = re.sub(r"^void |<.*|\(.*", "", row["Kernel Name"])
        grid = tuple(int(n) for n in re.findall(r"\d+", row["Grid Size"]))
        found.append((name, grid, float(row["Metric Value"].replace(",", "")) * UNITS[row["Metric Unit"]]))
    return found


def fits(record: Any, launch: tuple[str, tuple[int, ...], float]) -> bool:
    """May this launch be that of the account?"""
    from crenel import ncu

    name, grid, _ = launch
    if ncu.function_of(record) != name:
        return False
    return name not in BY_LIMB or grid[1:] == (record["polys"], record["limbs"])


def turned(records: list[Any], launches: list[tuple[str, tuple[int, ...], float]]) -> list[float]:
    """Microseconds of each record, from launches that begin anywhere in a bootstrap."""
    n = len(records)
    for begin in range(n):
        if len(launches) >= n and all(fits(records[(begin + i) % n], launches[i]) for i in range(n)):
            return [launches[(i - begin) % n][2] for i in range(n)]
    raise SystemExit(f"{len(launches)} launches are no bootstrap of the account's {n}, wherever it begins")


def account(run: Callable[[], Any], context: Any) -> list[Any]:
    import crenel

    run()
    with crenel.profile(context) as found:
        run()
    return found.records()


# Optimisations that are off: several GPUs exchange what is dropped as key switches wrote it.
OFF: dict[str, tuple[str, ...]] = {"one": (), "several": ("divided_rows",)}
# What several GPUs were measured at: levels and their limbs.
PRODUCTS = ((28, 47), (16, 23), (7, 11))
# What a record's launches were, each form besides those before it.
FORMS = {
    "today": "all that there is",
    "whole twiddles": "rows that read all their twiddles and make none, "
    "sources that every block brings by itself",
    # On several GPUs without entries_apart; of whole twiddles.
    "together": "EvalMod's real and imaginary parts on all GPUs together",
    "earlier": "keys without those for aligned levels; on one GPU without divided_rows, on several without "
    "rotated_rows and product_rows, too",
    "older": "launches that are not kept",
}
# Their tables stay as a file before has them: kernels of today launch nothing like them.
KEPT = ("whole twiddles", "earlier")
FORMAT = 3


def opened(off: tuple[str, ...]) -> Any:
    """A context of boot40 on a model of a GPU, with optimisations off."""
    import crenel
    from crenel import ckks

    warnings.simplefilter("ignore", ckks.InsecureParametersWarning)
    device = crenel.Device("cuda:dry")
    device.optimisations = device.optimisations.replace(**dict.fromkeys(off, False))
    return ckks.Context(ckks.preset("boot40"), device=device)


def bootstrap(off: tuple[str, ...]) -> list[Any]:
    from crenel import ckks

    context = opened(off)
    client = context.keygen()
    options = ckks.BootstrapOptions(aligned_keys=True)
    boot = context.bootstrapper(client.evaluation_keys(bootstrap=options), options)
    a = client.encrypt([0.5], level=boot.levels.input)
    return account(lambda: boot.eager(a), context)


def operations(off: tuple[str, ...]) -> list[list[Any]]:
    """Of products with their rescale."""
    context = opened(off)
    client = context.keygen()
    ev = context.evaluator(client.evaluation_keys(aligned=True))
    found = []
    for level, _ in PRODUCTS:
        a, b = (ev(client.encrypt([x], level=level)) for x in (0.5, 0.25))
        found.append(account(lambda a=a, b=b: a * b, context))  # type: ignore[misc]
    return found


def tables(form: str) -> list[str]:
    """Names of the accounts of a form."""
    operations = ["bootstrap", *(f"hmult_rescale, {limbs} limbs" for _, limbs in PRODUCTS)]
    return [f"{what}; {form}; {count}" for count in OFF for what in operations]


def kept(file: Path) -> tuple[dict[str, list[list[Any]]], dict[str, str]]:
    """Accounts that nothing makes any more, and the commits that they were computed at."""
    data = json.loads(file.read_text(encoding="utf-8"))
    if data.get("format") != FORMAT:
        raise SystemExit(f"{file}: format {data.get('format')}, expected {FORMAT}")
    names = [name for form in KEPT for name in tables(form)]
    if missing := [name for name in names if name not in data]:
        raise SystemExit(f"{file} lacks accounts that nothing makes any more: {', '.join(missing)}")
    commits = data["account_at_commit"]
    return {name: data[name] for name in names}, {form: commits[form] for form in KEPT}


def written(path: Path, head: Json, accounts: dict[str, list[list[Any]]], columns: tuple[str, ...]) -> None:
    """One launch a line, so that differences can be read."""
    head_text = json.dumps(head, indent=1)[:-2]
    tables = []
    for name, rows in accounts.items():
        body = ",\n  ".join(json.dumps(row) for row in rows)
        tables.append(f" {json.dumps(name)}: [\n  {body}\n ]")
    text = f'{head_text},\n "columns": {json.dumps(columns)},\n' + ",\n".join(tables) + "\n}\n"
    path.write_text(text, encoding="utf-8")


def make_counted(args: argparse.Namespace) -> None:
    from crenel import launch_times

    records = bootstrap(OFF["one"])
    us = turned(records, counted(args.counters))
    boot = json.loads(args.boot.read_text())
    whole = next(r["latency_us"] for r in boot["results"] if not r["graph"])
    head = {
        "kind": "crenel-counted-launches",
        "format": 1,
        "provenance": {
            "date": args.date,
            "device_description": boot["provenance"]["device_description"],
            "command": "ncu --csv --metrics gpu__time_duration.sum --cache-control none --clock-control none "
            "crenel_bench_boot --device cuda --params boot40 --once",
            "account_at_commit": args.commit,
        },
        "params": "boot40",
        "operation": "bootstrap",
        "whole_us": whole,
        "whole_from": args.boot.name,
    }
    rows = [[*row, round(took, 3)] for row, took in zip(launch_times.rows(records), us, strict=True)]
    written(args.json, head, {"launches": rows}, (*launch_times.COLUMNS, "us"))


def make_accounts(args: argparse.Namespace) -> None:
    from crenel import launch_times

    before, commits = kept(args.kept)
    head = {
        "kind": "crenel-gpus-accounts",
        "format": FORMAT,
        "params": "boot40",
        "account_at_commit": {"today": args.commit} | commits,
        "ring_dim": 65536,
        "forms": FORMS,
        "records": {form: sorted(vars(args)[form]) for form in FORMS if form != "today"},
    }
    made = [run for off in OFF.values() for run in (bootstrap(off), *operations(off))]
    found = {name: launch_times.rows(run) for name, run in zip(tables("today"), made, strict=True)}
    written(args.json, head, found | before, launch_times.COLUMNS)


def fit(args: argparse.Namespace) -> None:
    from crenel import analyze
    from crenel.launch_times import fitted, records_of

    data = json.loads(args.record.read_text())
    us = data["columns"].index("us")
    records = records_of(data["columns"], data["launches"])
    took = [1e-6 * row[us] for row in data["launches"]]
    found = fitted(records, took, 1e-6 * data["whole_us"], analyze.load_ceilings())
    by_kernel = {k: [round(1e6 * a, 3), round(b, 4)] for k, (a, b) in sorted(found.by_kernel.items())}
    rest = [round(1e6 * found.rest[0], 3), round(found.rest[1], 4)]
    told = {"ahead_us": round(1e6 * found.ahead, 3), "rest": rest, "by_kernel": by_kernel}
    json.dump(told, sys.stdout, indent=1)
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True)
    count = commands.add_parser("count")
    count.add_argument("--counters", type=Path, required=True)
    count.add_argument("--boot", type=Path, required=True, help="what a bootstrap took in a queue")
    count.add_argument("--date", required=True)
    count.set_defaults(run=make_counted)
    accounts = commands.add_parser("accounts")
    accounts.add_argument(
        "--kept", type=Path, required=True, help=f"the file before: its {' and '.join(KEPT)} stay"
    )
    for form, what in FORMS.items():
        if form != "today":
            name = f"--{form.replace(' ', '-')}"
            accounts.add_argument(name, dest=form, nargs="*", default=[], help=f"records of {what}")
    accounts.set_defaults(run=make_accounts)
    for made in (count, accounts):
        made.add_argument("--json", type=Path, required=True)
        made.add_argument("--commit", default=_commit())
    fitting = commands.add_parser("fit")
    fitting.add_argument("record", type=Path)
    fitting.set_defaults(run=fit)
    args = parser.parse_args()
    args.run(args)


def _commit() -> str:
    told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return told.stdout.strip()


if __name__ == "__main__":
    main()
