"""``crenel params``: list, show, explain, generate, for CKKS and TFHE."""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from crenel import ckks, tfhe
from crenel._crenel import level_table
from crenel.arguments import natural
from crenel.cli.output import table
from crenel.cli.sets import ckks_set, tfhe_set
from crenel.explain import facts, to_toml
from crenel.explain_tfhe import TFHE_HEADER, tfhe_explain, tfhe_facts, tfhe_row

app = typer.Typer(help="Parameter sets: limbs, scales, security.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="A name of crenel params list.")]


def _show(params: ckks.Params) -> None:
    for name, value in facts(params):
        print(f"{name:<14}{value}")
    print()
    header, *levels = level_table(params)
    table(header, levels)


@app.command("list")
def list_() -> None:
    """List the named sets."""
    rows = []
    for name in ckks.preset_names():
        p = ckks_set(name)
        security = "INSECURE" if p.insecure else f"{p.security_bits:.0f}"
        limbs = f"{p.chain_limbs} + {p.alpha}"
        levels = str(p.normal_top_level)
        if p.max_level > p.normal_top_level:
            levels += f" + {p.max_level - p.normal_top_level} boot"
        rows.append((name, str(p.log_n), f"2^{p.log_scale}", levels, limbs, f"{p.log_pq:.0f}", security))
    table(("name", "log N", "scale", "levels", "limbs", "log PQ", "security"), rows, "CKKS")
    print()
    table(
        TFHE_HEADER,
        [tfhe_row(tfhe.preset(name, allow_insecure=True)) for name in tfhe.preset_names()],
        "TFHE",
    )


@app.command()
def show(name: Name) -> None:
    """Print limbs, scales and security of a named set, or what TFHE has instead."""
    if params := tfhe_set(name):
        for key, value in tfhe_facts(params):
            print(f"{key:<18}{value}")
        return
    _show(ckks_set(name))


@app.command()
def explain(name: Name) -> None:
    """Say in words what a named set offers and costs."""
    params = tfhe_set(name)
    print(tfhe_explain(params) if params else ckks_set(name).explain())


@app.command()
def generate(
    log_n: Annotated[int, typer.Option("--log-n", help="log2 of the ring degree, 10 to 17.")],
    scale_bits: Annotated[int, typer.Option("--scale-bits", help="28, 30, 35, 40, 45 or 50.")],
    depth: Annotated[int, typer.Option("--depth", help="Levels to consume.")],
    alpha: Annotated[int, typer.Option("--alpha", help="Special primes; 0 chooses.")] = 0,
    toml: Annotated[bool, typer.Option("--toml", help="Print a file for params/ instead.")] = False,
    allow_insecure: Annotated[
        bool, typer.Option("--allow-insecure", help="Below 128 bits, for tests.")
    ] = False,
) -> None:
    """Search primes for these needs."""
    numbers = {"--log-n": log_n, "--scale-bits": scale_bits, "--depth": depth, "--alpha": alpha}
    for option, number in numbers.items():
        natural(option, number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ckks.InsecureParametersWarning)
        params = ckks.Params(
            log_n=log_n, scale_bits=scale_bits, depth=depth, alpha=alpha, allow_insecure=allow_insecure
        )
    if toml:
        print(to_toml(params), end="")
    else:
        _show(params)
