"""``crenel bench``: what an installation can measure of itself."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

import crenel
from crenel.errors import InsecureParametersWarning, ParameterError, UnsupportedError

app = typer.Typer(help="Benchmarks.", invoke_without_command=True)


@app.callback()
def without(context: typer.Context) -> None:
    """Measure this installation on this machine."""
    if context.invoked_subcommand is None:
        raise UnsupportedError(
            "crenel bench boot measures bootstrapping; the other benchmarks are not part of an "
            "installation: in the source tree, use ./run bench"
        )


@app.command()
def boot(
    params: Annotated[str, typer.Option(help="A set of crenel params list with levels for it.")] = "boot40",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:<index> or ref.")] = "auto",
    runs: Annotated[int, typer.Option(help="Timed runs; 0: as many as fit a few seconds.")] = 0,
    minimal: Annotated[bool, typer.Option("--minimal", help="Minimal keys: two a transform.")] = False,
    slots: Annotated[int, typer.Option(help="A power of two; 0: all.")] = 0,
    json: Annotated[Path | None, typer.Option(help="Write the results, with their provenance.")] = None,
) -> None:
    """Bootstrapping: latency, precision, levels and memory. Exit status 1 when a result is wrong."""
    crenel.device_info(device)  # refuse at once what cannot be had
    if runs < 0:
        raise ParameterError(f"--runs must not be negative, got {runs}", {"runs": str(runs)})
    if json is not None and not json.parent.is_dir():
        raise ParameterError(f"--json: there is no folder {json.parent}", {"json": str(json)})
    from crenel import ckks
    from crenel.bench.boot import BootBench

    with warnings.catch_warnings():  # the output says it
        warnings.simplefilter("ignore", InsecureParametersWarning)
        chosen = ckks.preset(params, allow_insecure=params.startswith("toy-"))
    bench = BootBench(chosen, device, minimal, slots or None)
    bench.run(runs)
    bench.print()
    if json is not None:
        command = f"crenel bench boot --params {params} --device {device}"
        command += f" --runs {runs}" if runs else ""
        command += " --minimal" if minimal else ""
        command += f" --slots {slots}" if slots else ""
        bench.write(json, f"{command} --json {json.name}")
    for name in bench.wrong:
        print(f"wrong result: {name}", file=sys.stderr)
    raise typer.Exit(1 if bench.wrong else 0)
