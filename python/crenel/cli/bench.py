"""``crenel bench``: what an installation can measure of itself, by the suites of bench/."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup

from crenel.cli.bench_ablation import ablation
from crenel.cli.bench_bridge import bridge
from crenel.cli.bench_growth import growth
from crenel.cli.bench_integers import integers
from crenel.cli.bench_levels import levels
from crenel.cli.bench_pool import pool
from crenel.errors import ParameterError, UnsupportedError


class _Suites(TyperGroup):
    """The suites, which an unknown name is answered with."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # Typer may have Click within itself or beside
        """As Click's; ParameterError names what there is."""
        found = super().get_command(ctx, cmd_name)
        if found is None and not cmd_name.startswith("-"):
            known = ", ".join(self.list_commands(ctx))
            raise ParameterError(
                f"no suite of benchmarks is named '{cmd_name}'; known: {known}; a parameter set follows the "
                "suite: crenel bench boot toy-boot40",
                {"suite": cmd_name},
            )
        return found


app = typer.Typer(help="Benchmarks.", invoke_without_command=True, cls=_Suites)
# The suite reads its arguments itself, --help too.
_HAND_OVER = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


@app.callback()
def without(context: typer.Context) -> None:
    """Measure this installation on this machine."""
    if context.invoked_subcommand is None:
        raise UnsupportedError(
            "crenel bench boot measures bootstrapping, crenel bench ablation what each optimisation is "
            "worth, crenel bench growth how times grow, crenel bench levels what fewer levels and slots "
            "save, crenel bench tfhe gates and tables, crenel bench integers operations on encrypted "
            "integers, crenel bench bridge tables between CKKS and TFHE, crenel bench pool several devices; "
            "the other benchmarks are not part of an installation: in "
            "the source tree, use ./run bench"
        )


@app.command(context_settings=_HAND_OVER)
def boot(context: typer.Context) -> None:
    """Bootstrapping: latency, precision, levels and memory. Exit status 1 when a result is wrong."""
    from crenel import _crenel
    from crenel.cli.bench_energy import EnergyMeter

    _run(lambda words: _crenel.bench_boot(words, EnergyMeter()), "boot", context.args)


@app.command(context_settings=_HAND_OVER)
def tfhe(context: typer.Context) -> None:
    """TFHE: bootstraps a second, latency, sizes of keys. Exit status 1 when results are wrong."""
    from crenel import _crenel

    _run(_crenel.bench_tfhe, "tfhe", context.args)


app.command(name="ablation")(ablation)
app.command(name="growth")(growth)
app.command(name="levels")(levels)
app.command(name="bridge")(bridge)
app.command(name="integers")(integers)
app.command(name="pool")(pool)


def _run(suite: Callable[[list[str]], int], name: str, arguments: list[str]) -> None:
    sys.stdout.flush()
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends what runs outside of Python
    try:
        code = suite([f"crenel bench {name}", *arguments])
    finally:
        signal.signal(signal.SIGINT, before)
    raise typer.Exit(code)
