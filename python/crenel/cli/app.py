"""The commands. Heavy modules are imported by the command that needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import crenel
from crenel.cli import analyze as analysis
from crenel.cli import bench, demo, fhecore, params, serve, workload
from crenel.cli import reproduce as reproduction
from crenel.cli.gpus import gpus
from crenel.cli.output import expect_with, size, table
from crenel.cli.tune import tune
from crenel.errors import ParameterError

app = typer.Typer(
    name="crenel",
    help="Computing on encrypted numbers (CKKS) and bits (TFHE) on CPUs and NVIDIA GPUs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(params.app, name="params")
app.add_typer(bench.app, name="bench")
app.add_typer(demo.app, name="demo")
app.add_typer(workload.app, name="workload")
app.add_typer(fhecore.app, name="fhecore")
app.command("reproduce")(reproduction.reproduce)
app.add_typer(serve.app, name="tenant")
app.command("serve")(serve.serve)
app.command("gpus")(gpus)
app.command("tune")(tune)


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    """Computing on encrypted numbers (CKKS) and bits (TFHE) on CPUs and NVIDIA GPUs."""
    # --debug is taken out of the arguments, wherever it stands, in crenel.cli.main.


@app.command()
def version() -> None:
    """Print the version."""
    print(crenel.__version__)


@app.command()
def devices() -> None:
    """List the devices that can compute here."""
    rows = [
        (d.name, d.description, size(d.memory_bytes) if d.memory_bytes else "host") for d in crenel.devices()
    ]
    table(("device", "description", "memory"), rows)
    if reason := crenel.cuda_unavailable_reason():
        print(f"no CUDA device: {reason}")


@app.command()
def doctor(
    json: Annotated[bool, typer.Option("--json", help="As a JSON object.")] = False,
) -> None:
    """Say what was found on this machine, and why a GPU is not used."""
    from crenel.cli.doctor import run

    raise typer.Exit(run(json))


@app.command()
def analyze(
    parameters: Annotated[str, typer.Argument(metavar="PARAMS", help="A name of crenel params list.")],
    operation: Annotated[
        analysis.Operation | None,
        typer.Option(
            help="What to run; default bootstrap, of --sweep hmult, of --counters-from what it has."
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="cuda, cuda:<index>, or a model that needs no GPU: cuda:dry, an H200, the default where "
            "nothing is counted; cuda:dry-<model>, such as cuda:dry-a100."
        ),
    ] = None,
    level: Annotated[
        int | None, typer.Option(help="Of the inputs; default 0 to bootstrap, else the top.")
    ] = None,
    limbs: Annotated[bool, typer.Option("--limbs", help="Every limb count in a row of its own.")] = False,
    json: Annotated[Path | None, typer.Option(help="Write the tables to a new file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw them, to a new file: .png, .pdf or .svg.")] = None,
    sweep: Annotated[bool, typer.Option("--sweep", help="Over limb counts and batches.")] = False,
    batches: Annotated[str | None, typer.Option(help="Of a sweep, by commas; default 1,2,4,8,16.")] = None,
    steps: Annotated[
        int | None, typer.Option(help="Limb counts of a sweep, at most; default 12.", min=1)
    ] = None,
    counters: Annotated[
        bool, typer.Option("--counters", help="Count beside it, by ncu on this GPU.")
    ] = False,
    counters_to: Annotated[Path | None, typer.Option(help="Count, and write that to a new file.")] = None,
    counters_from: Annotated[Path | None, typer.Option(help="Counters of such a file beside it.")] = None,
    counters_seconds: Annotated[
        float | None, typer.Option(help="That ncu may take; default 600.", min=1)
    ] = None,
    ceilings: Annotated[
        Path | None,
        typer.Option(help="Rates of the card, by dev/kernels/ceilings_probe.cu; default an H200's."),
    ] = None,
) -> None:
    """Print what an operation moves and computes, against measured ceilings."""
    expect_with("--sweep", sweep, {"--batches": batches, "--steps": steps})
    if sweep and (level is not None or limbs):
        raise ParameterError("--level and --limbs are of one level, not of --sweep")
    counting = counters or counters_to is not None
    expect_with("--counters or --counters-to", counting, {"--counters-seconds": counters_seconds})
    beside = analysis.Counters(counters, counters_from, counters_to, counters_seconds or 600)
    default = analysis.Operation.hmult if sweep else analysis.Operation.bootstrap
    of = beside.operation(operation, default)
    on = device or ("cuda" if beside.wanted else "cuda:dry")
    if sweep:
        from crenel.cli.analyze_sweep import BATCHES, STEPS, run

        over = BATCHES if batches is None else batches
        run(parameters, on, of, over, steps or STEPS, json, plot, beside, ceilings)
    else:
        analysis.run(parameters, on, of, level, json, plot, limbs, beside, ceilings)
