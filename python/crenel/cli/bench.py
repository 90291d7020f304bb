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
            "crenel bench boot measures bootstrapping, crenel bench tfhe gates and tables; the other "
            "benchmarks are not part of an installation: in the source tree, use ./run bench"
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


@app.command()
def tfhe(
    set_: Annotated[str, typer.Option("--set", help="A set of crenel params list.")] = "bool128",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:<index> or ref.")] = "auto",
    slots: Annotated[int, typer.Option(help="Messages under a mask, 1 to 16.")] = 1,
    batch: Annotated[int, typer.Option(help="Messages of a call; 0: 16384 on a GPU, else 256.")] = 0,
    arithmetic: Annotated[str, typer.Option(help="exact, approx or split; default the set's own.")] = "",
    runs: Annotated[int, typer.Option(help="Timed runs; 0: as many as fit a few seconds.")] = 0,
    json: Annotated[Path | None, typer.Option(help="Write the results, with their provenance.")] = None,
) -> None:
    """TFHE: bootstraps a second, latency, sizes of keys. Exit status 1 when results are wrong."""
    kind = crenel.device_info(device).kind  # refuse at once what cannot be had
    for name, value in (("runs", runs), ("batch", batch)):
        if value < 0:
            raise ParameterError(f"--{name} must not be negative, got {value}", {name: str(value)})
    if json is not None and not json.parent.is_dir():
        raise ParameterError(f"--json: there is no folder {json.parent}", {"json": str(json)})
    from crenel import tfhe
    from crenel.bench.tfhe import TfheBench

    size = batch or (16384 if kind == "cuda" else 256)
    with warnings.catch_warnings():  # the output says it
        warnings.simplefilter("ignore", InsecureParametersWarning)
        bench = TfheBench(tfhe.preset(set_), device, slots, arithmetic or None, size)
    bench.run(runs)
    bench.print()
    if json is not None:
        command = f"crenel bench tfhe --set {set_} --device {device} --slots {slots} --batch {size}"
        command += f" --arithmetic {arithmetic}" if arithmetic else ""
        command += f" --runs {runs}" if runs else ""
        bench.write(json, f"{command} --json {json.name}")
    for name in bench.wrong:
        print(f"wrong result: {name}", file=sys.stderr)
    raise typer.Exit(1 if bench.wrong else 0)
