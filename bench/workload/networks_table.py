"""A network at several scales, activations and batches, in the benchmark schema: a file a set and activation.

    python bench/workload/networks_table.py --device cuda --network resnet20 --programs FOLDER
        --weights FILE --data FILE --calibration FILE [--activations fit:63,fit:27,minimax] [--batches 1,8,32]

Each run is a process of its own, by the command `crenel workload`, with timed layers behind the timed runs.
Programs are compiled where FOLDER has none of parameters, activation and batch, which takes minutes and no
device: with `--compile` nothing else is done, and `--clear` keeps the results in the clear beside them, with
which, by `--inputs`, runs elsewhere need neither weights nor data. `--graph` replays recordings. A run whose
result is wrong is recorded as such; one that ends with an error leaves a line in the summary and none
in the file. Needs the package installed.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path

from processes import Run, collect

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
SETS = ("boot30", "boot35", "boot40", "boot48dr")
NETWORKS = ("resnet20", "bert-tiny", "minilm", "mlp", "lenet")
FILES = ("weights", "data", "calibration")


def network(options: argparse.Namespace) -> list[str]:
    """Arguments of every run."""
    given = [(option, getattr(options, option)) for option in FILES]
    files = [part for option, path in given if path is not None for part in (f"--{option}", str(path))]
    return [options.network, *files]


def polynomials(activation: str) -> list[str]:
    """Arguments for ``fit:63``, ``minimax``, or ``minimax:15-15-27``."""
    strategy, _, degree = activation.partition(":")
    if "-" in degree:
        return ["--activation", strategy, "--composite", degree.replace("-", ",")]
    return ["--activation", strategy, *(["--degree", degree] if degree else [])]


def program_of(options: argparse.Namespace, params: str, activation: str, batch: int) -> Path:
    """The file of a compiled program."""
    return options.programs / f"{options.network}-{params}-{activation.replace(':', '')}-{batch}.crn"


def images(options: argparse.Namespace, batch: int) -> str:
    """Samples of a run."""
    return str(max(options.images, 2 * batch))


def clear(options: argparse.Namespace, params: str, activation: str, batch: int) -> list[str]:
    """Arguments that keep the results in the clear beside a program, by the number of samples."""
    file = program_of(options, params, activation, batch)
    return ["--clear", str(file.with_suffix(f".{images(options, batch)}.npz"))] if options.clear else []


def kept(options: argparse.Namespace, params: str, activation: str, batch: int) -> Path | None:
    """The file of `clear` from which a run takes its samples, whatever their number; None: it makes its own.
    Raises FileNotFoundError where there is none, or several."""
    if not options.inputs:
        return None
    file = program_of(options, params, activation, batch)
    found = sorted(file.parent.glob(f"{file.stem}.*.npz"))
    if len(found) != 1:
        raise FileNotFoundError(f"{len(found)} files {file.stem}.*.npz beside the program, expected one")
    return found[0]


def compiled(options: argparse.Namespace, params: str, activation: str, batch: int) -> str | None:
    """Makes the program where it is not there; why it could not be made."""
    target = program_of(options, params, activation, batch)
    if target.exists():
        return None
    if options.inputs:
        return f"{params}, {activation}, batch {batch}: there is no {target}"
    command = [sys.executable, "-m", "crenel", "workload", *network(options), "--device", "cpu"]
    command += ["--params", params, "--batch", str(batch), "--simulate-only"]
    command += ["--images", images(options, batch) if options.clear else "1"]
    command += clear(options, params, activation, batch)
    command += [*polynomials(activation), "--save", str(target)]
    command += ["--costs", options.costs] if options.costs else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if target.exists():
        print(f"{params}, {activation}, batch {batch}: compiled", flush=True)
        return None
    last = (done.stderr or done.stdout).strip().splitlines()
    return f"{params}, {activation}, batch {batch}: {last[-1] if last else 'no output'}"


def runs(options: argparse.Namespace, params: str, activation: str) -> list[Run]:
    """Of one file: a run a batch."""
    common = [*network(options), "--device", options.device, "--params", params, "--warm"]
    common += [f"--{name}" for name in ("energy", "errors", "graph") if getattr(options, name)]
    return [
        Run(
            f"batch {batch}",
            [
                *common, "--batch", str(batch), "--images", images(options, batch),
                "--program", str(program_of(options, params, activation, batch)),
                *(["--inputs", str(found)] if (found := kept(options, params, activation, batch)) else
                  clear(options, params, activation, batch)),
            ],
        )
        for batch in options.batches
        if program_of(options, params, activation, batch).exists()
    ]  # fmt: skip


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--network", default="resnet20", choices=NETWORKS)
    for option in FILES:
        parser.add_argument(f"--{option}", type=Path, help="as of the command")
    parser.add_argument("--programs", type=Path, required=True, help="folder of compiled programs")
    parser.add_argument("--costs", help="of a device, by which programs are compiled, as 'NVIDIA H200'")
    parser.add_argument("--clear", action="store_true", help="results in the clear beside the programs")
    parser.add_argument("--compile", action="store_true", help="make programs that are missing, and end")
    parser.add_argument("--params", default=",".join(SETS), help="sets, with commas between")
    parser.add_argument("--activations", default="fit:63", help="as fit:63,fit:27,minimax:15-15-27")
    parser.add_argument("--batches", default="1,8,32", help="samples of a run, with commas between")
    parser.add_argument("--images", type=int, default=32, help="at least two batches of them are run")
    parser.add_argument("--errors", action="store_true", help="measure the error of every layer")
    parser.add_argument("--energy", action="store_true", help="sample the GPU's power")
    parser.add_argument("--graph", action="store_true", help="replay each run as one recording")
    parser.add_argument("--inputs", action="store_true", help="samples and results as --clear kept them")
    parser.add_argument("--timeout", type=float, default=500.0, help="seconds of one run")
    parser.add_argument("--folder", type=Path, default=RESULTS)
    parser.add_argument("--label", default="h200", help="of the device, in the names of the files")
    options = parser.parse_args(arguments)
    for option in FILES:
        path = getattr(options, option)
        if path is not None and not path.exists():
            parser.error(f"--{option}: there is no {path}")
    for option in ("programs", "folder"):
        if not getattr(options, option).is_dir():
            parser.error(f"--{option}: there is no folder {getattr(options, option)}")
    try:
        options.batches = [int(part) for part in options.batches.split(",")]
    except ValueError:
        parser.error(f"--batches: {options.batches}, expected numbers with commas between")
    options.activations = options.activations.split(",")
    if options.inputs and (options.clear or options.compile or any(getattr(options, f) for f in FILES)):
        parser.error("--inputs: programs and samples are there; without --clear, --compile and files")
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    given = sys.argv[1:] if arguments is None else arguments
    command = shlex.join(["bench/workload/networks_table.py", *given])
    failed: list[str] = []
    for params in options.params.split(","):
        for activation in options.activations:
            made = [compiled(options, params, activation, batch) for batch in options.batches]
            failed += [why for why in made if why is not None]
            if options.compile:
                continue
            wanted = runs(options, params, activation)
            document, errors = collect(wanted, f"{params}, {activation}", command, options.timeout)
            failed += errors
            if document is None:
                continue
            polynomial = activation.replace(":", "") + ("-recorded" if options.graph else "")
            name = f"workload-{params}-{options.label}-{options.network}-{polynomial}.json"
            (options.folder / name).write_text(json.dumps(document, indent=1) + "\n")
            print(f"wrote {options.folder / name}", flush=True)
    for line in failed:
        print(f"no result: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
