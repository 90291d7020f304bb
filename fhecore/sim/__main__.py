"""The GPU model from the command line: `python -m fhecore.sim COMMAND ...`; without one, the state of
the measurements."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path

from . import archive, params, validate

# Command: (module whose main it is, what it does).
COMMANDS = {
    "pack": ("archive", "collect.py's tar, or what figures need of it, into the archive that is committed"),
    "ingest": ("ingest", "calibrate, validate, compose and report from the archive or collect.py's tar"),
    "calibrate": ("calibrate", "fit the parameters to measured microbenchmarks"),
    "validate": ("validate", "compare the model with held-out kernels"),
    "compose": ("compose", "predict whole operations with the unit"),
    "schedules": ("schedules", "state what whole workloads launch, on the device that executes nothing"),
    "sweep": ("sweep", "state what bootstrappings of other FFT iterations launch"),
    "workloads": ("workloads", "compose whole workloads from their schedules"),
    "reference": ("reference", "the paper's instruction counts through the model"),
    "docs": ("pages", "write the pages that hold figures of the model"),
    "report": ("report", "print the evaluation as markdown"),
}
COLLECT = """To measure, on a machine with an H200, nvcc, ncu and cuobjdump (at most 8 minutes):
    python3 fhecore/sim/collect.py --out OUT
then anywhere:
    python3 -m fhecore.sim pack OUT/fhecore-sim.tar.gz      # the archive, to be committed
    python3 -m fhecore.sim ingest                           # all figures from it
    python3 -m fhecore.sim docs                             # and the pages that show them"""


def status(data: Path) -> str:
    """What is measured in `data`, what is missing, and how to collect it."""
    lines = []
    calibration = params.calibration("h200", data)
    if calibration is None:
        lines.append("calibration   missing")
    else:
        verdict = "within" if calibration.get("passed") else "OUTSIDE"
        lines.append(f"calibration   {calibration.get('device')}: {verdict} its tolerance")
    try:
        found = validate.require("h200", data)
        lines.append(f"validation    {found['kernels']} kernels, mean error {100 * found['mean']:.1f} %")
    except validate.NotValidated as error:
        lines.append(f"validation    {error}")
    for target in ("h200", "a100"):
        path = data / f"predictions-{target}.json"
        if not path.exists():
            lines.append(f"predictions   {target}: missing")
            continue
        operations = json.loads(path.read_text())["operations"]
        refused = [o["name"] for o in operations if o.get("refused")]
        lines.append(f"predictions   {target}: {len(operations)} operations, refused: {refused or 'none'}")
    kept = archive.COMMITTED.name
    state = (
        "figures can be computed again"
        if archive.COMMITTED.exists()
        else "missing: figures cannot be recomputed"
    )
    return "\n".join([*lines, f"profiles      {kept}: {state}", "", COLLECT])


def main(arguments: list[str]) -> int:
    if arguments and arguments[0] in COMMANDS:
        # The module's own parser reads the rest, --help included.
        return importlib.import_module(f".{COMMANDS[arguments[0]][0]}", __package__).main(arguments[1:])
    parser = argparse.ArgumentParser(prog="fhecore.sim", description=" ".join(__doc__.split()))
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    own = commands.add_parser("status", help="what is measured, what is missing, how to collect (default)")
    own.add_argument("--data", type=Path, default=params.DATA)
    for name, (_, what) in COMMANDS.items():
        commands.add_parser(name, help=what, add_help=False)
    args = parser.parse_args(arguments)
    print(status(getattr(args, "data", params.DATA)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
