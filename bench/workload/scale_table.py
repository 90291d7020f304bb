"""Training and sorting at several scales, in the benchmark schema: one file for each parameter set.

    python bench/workload/scale_table.py --device cuda --data FOLDER [--params boot30,boot35,...] [...]

Each run is a process of its own, by the command `crenel workload`, so that peaks of memory and first calls
do not mix. For each set and workload: `--seeds` runs as they are (the figures), and one with timed stages,
which waits for the device. A run whose result is wrong is recorded as such; one that ends with an error
leaves a line in the summary and none in the file. FOLDER: MNIST's files, or a file of rows and
labels; --values: a file of numbers to sort (crenel.workloads.data). Needs the package installed.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

from processes import Run, collect

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
SETS = ("boot30", "boot35", "boot40", "boot48dr")


def runs(options: argparse.Namespace, params: str) -> list[Run]:
    """Of one parameter set; the runs with stages last."""
    common = ["--device", options.device, "--params", params, "--variant", options.variant]
    energy = ["--energy"] if options.energy else []
    figures = ["--warm", "--no-stages", *energy]
    if options.graph:
        figures.append("--graph")
    wanted: list[Run] = []
    if "helr" in options.workloads:
        helr = ["helr", *common, "--iterations", str(options.iterations)]
        if options.data is not None:
            helr += ["--data", str(options.data)]
        for seed in range(1, options.seeds + 1):
            seeded = [*helr, "--order", "random", "--seed", str(seed)]
            wanted.append(Run(f"helr, seed {seed}", [*seeded, *figures]))
        wanted.append(Run("helr, stages", [*helr, "--order", "random", "--seed", "1", "--warm"]))
    if "sort" in options.workloads:
        sort = ["sort", *common, "--count", str(options.count)]
        if options.values is not None:
            sort += ["--data", str(options.values)]
        for seed in range(1, options.seeds + 1):
            wanted.append(Run(f"sort, seed {seed}", [*sort, "--seed", str(seed), *figures]))
        wanted.append(Run("sort, stages", [*sort, "--seed", "1", "--warm"]))
    return wanted


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--params", default=",".join(SETS), help="sets, with commas between")
    parser.add_argument("--workloads", default="helr,sort")
    parser.add_argument(
        "--data",
        type=Path,
        help="of helr: MNIST's files, or npz or CSV; without, scikit-learn's breast cancer",
    )
    parser.add_argument("--values", type=Path, help="of sort: npy, npz or CSV; without, uniform random ones")
    parser.add_argument("--iterations", type=int, default=32)
    parser.add_argument("--count", type=int, default=1 << 14, help="values to sort; 0: all of --values")
    parser.add_argument("--graph", action="store_true", help="replay recorded parts")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--variant", default="crenel", choices=["crenel", "paper"])
    parser.add_argument("--energy", action="store_true", help="sample the GPU's power")
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds of one run")
    parser.add_argument("--folder", type=Path, default=RESULTS)
    parser.add_argument("--label", default="h200", help="of the device, in the names of the files")
    options = parser.parse_args(arguments)
    unknown = set(options.workloads.split(",")) - {"helr", "sort"}
    if unknown:
        parser.error(f"--workloads: {', '.join(sorted(unknown))}; known: helr, sort")
    for option, path in (("--data", options.data), ("--values", options.values)):
        if path is not None and not path.exists():
            parser.error(f"{option}: there is no {path}")
    if not options.folder.is_dir():
        parser.error(f"--folder: there is no {options.folder}")
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    given = sys.argv[1:] if arguments is None else arguments
    command = shlex.join(["bench/workload/scale_table.py", *given])
    failed: list[str] = []
    for params in options.params.split(","):
        document, errors = collect(runs(options, params), params, command, options.timeout)
        failed += errors
        if document is None:
            continue
        variant = "" if options.variant == "crenel" else f"-{options.variant}"
        target = options.folder / f"workload-{params}{variant}-{options.label}.json"
        target.write_text(json.dumps(document, indent=1) + "\n")
        print(f"wrote {target}", flush=True)
    for line in failed:
        print(f"no result: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
