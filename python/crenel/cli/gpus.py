"""``crenel gpus``: what several GPUs would do with bootstraps, by the traffic account, and with gates."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from crenel.errors import ParameterError

LEAST_MS, MOST_MS = 1e-3, 1e9  # of --measured-ms: rates and their products stay finite


@dataclass(frozen=True)
class _Account:
    """One bootstrap of batch 1."""

    accounts: Any
    ring_dim: int
    bound: float
    bytes_in: int
    bytes_out: int
    keys: int
    held: int


def gpus(
    parameters: Annotated[str, typer.Argument(metavar="PARAMS", help="A name of crenel params list.")],
    counts: Annotated[str, typer.Option("--gpus", help="How many of one host, by commas.")] = "1,2,4,8",
    each: Annotated[
        int | None,
        typer.Option(help="Things a GPU in a batch; default 32 bootstraps, 32,768 gates.", min=1),
    ] = None,
    measured_ms: Annotated[
        float | None,
        typer.Option(
            help="What one bootstrap of CKKS takes on one GPU, for ciphertexts spread, default the model's; "
            "of TFHE a batch of --each gates, default as measured."
        ),
    ] = None,
    domain: Annotated[
        str | None, typer.Option(help="Plan NVLink domains of so many GPUs, by commas: 8, 72.")
    ] = None,
    hosts: Annotated[
        str | None, typer.Option(help="How many such domains, by commas; default 1,2,4,8.")
    ] = None,
    link: Annotated[
        str | None, typer.Option(help="Between domains: infiniband, the default, or infiniband-800.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--json", help="Write the figures to a new file.")] = None,
) -> None:
    """Say what several GPUs would bring: bootstraps spread over them, one bootstrap's limbs, gates of TFHE.

    No GPU is needed. Launches are timed as counted on one H200, links as measured between four;
    docs/guide/gpus.md has the assumptions, and how far the model is from what was measured. With --domain,
    GPUs of several hosts, whose links are assumed. Of a set of TFHE a pool's gates, from a measured rate.
    """
    from crenel import gpus as model
    from crenel.cli import gpus_gates
    from crenel.cli.output import expect_at_most, expect_new, expect_with, numbers
    from crenel.cli.sets import tfhe_set

    of_gpus = numbers(counts, "--gpus", most=model.most())
    expect_at_most(each or 1, model.MOST_EACH, "--each")
    expect_with("--domain", domain is not None, {"--hosts": hosts, "--link": link})
    network = "infiniband" if link is None else link
    shapes = _shapes(domain, "1,2,4,8" if hosts is None else hosts, network)
    if measured_ms is not None and not LEAST_MS <= measured_ms <= MOST_MS:
        raise ParameterError(
            f"--measured-ms {measured_ms}, expected {LEAST_MS:g} to {MOST_MS:g}", {"measured_ms": measured_ms}
        )
    expect_new(file)
    if gates := tfhe_set(parameters):
        if shapes:
            raise ParameterError(
                f"--domain {domain}, expected none with a set of TFHE", {"domain": str(domain)}
            )
        gpus_gates.tell(gates, of_gpus, each, measured_ms, file)
    else:
        _bootstraps(parameters, of_gpus, each or 32, measured_ms, (shapes, network), file)


def _bootstraps(
    parameters: str,
    of_gpus: Sequence[int],
    each: int,
    measured_ms: float | None,
    plan: tuple[list[tuple[int, int]], str],
    file: Path | None,
) -> None:
    """Says it of bootstraps of CKKS. plan: (GPUs of a domain, domains) of each, and the link between them."""
    from crenel import analyze
    from crenel import gpus as model
    from crenel.cli import gpus_output
    from crenel.launch_times import load_launch_times
    from crenel.records import write_record

    shapes, link = plan
    ceilings, links, times = analyze.load_ceilings(), model.load_links(), load_launch_times()
    one = _account(parameters)
    alone = model.divided(one.accounts, one.ring_dim, 1, "gathered", ceilings, links, times).latency
    took = alone if measured_ms is None else 1e-3 * measured_ms
    spread = [model.spread(took, one.bytes_in, one.bytes_out, n, each, links) for n in of_gpus]
    divided = [
        model.divided(one.accounts, one.ring_dim, n, way, ceilings, links, times)
        for way in ("gathered", "aggregated")
        for n in of_gpus
    ]
    planned = _planned(one, shapes, each, link)
    how = (
        "measured"
        if measured_ms is not None
        else f"the model's; the account's bound is {1e3 * one.bound:.2f}"
    )
    gpus_output.head(parameters, one, took, how, ceilings.device)
    gpus_output.spread(spread, "Ciphertexts spread over GPUs, all keys on each (ckks.DevicePool)")
    gpus_output.divided(divided, alone, one.keys)
    gpus_output.planned(planned, alone, link)
    if file is None:
        return
    facts = {"kind": "crenel-gpus", "format": 3, "params": parameters, "device": ceilings.device}
    one_facts = {k: v for k, v in asdict(one).items() if k != "accounts"}
    one_facts |= {"seconds": took, "model": alone, "launches": len(one.accounts.one)}
    one_facts["launches_of_several"] = len(one.accounts.several)
    found: dict[str, Any] = {**facts, "one": one_facts, "launch_times": analyze.data()["launches"]["source"]}
    found |= {"links": analyze.data()["links"], "spread": [asdict(row) for row in spread]}
    found["divided"] = [asdict(row) for row in divided]
    if planned:
        found["planned"] = {"link": link, "each": each, "rows": [asdict(row) for row in planned]}
    write_record(file, found, finite=True)


def _shapes(domain: str | None, hosts: str, link: str) -> list[tuple[int, int]]:
    """(GPUs of a domain, domains), checked before anything is computed."""
    from crenel import hosts as plans
    from crenel.cli.output import numbers

    of_hosts = numbers(hosts, "--hosts", most=plans.MOST_HOSTS)
    plans.load_network(link)
    if domain is None:
        return []
    sizes = numbers(domain, "--domain")
    for size in sizes:
        plans.load_domain(size)
    return [(size, count) for size in sizes for count in of_hosts]


def _planned(one: _Account, shapes: list[tuple[int, int]], each: int, link: str) -> list[Any]:
    from crenel import analyze
    from crenel import hosts as plans
    from crenel.launch_times import load_launch_times

    moved = one.bytes_in, one.bytes_out
    rest = each, plans.load_network(link), analyze.load_ceilings(), load_launch_times()
    return [plans.plan(one.accounts, one.ring_dim, moved, shape, *rest) for shape in shapes]


def _account(parameters: str) -> _Account:
    import crenel
    from crenel import analyze, ckks
    from crenel import gpus as model

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ckks.InsecureParametersWarning)
        params = ckks.preset(parameters, allow_insecure=True)
    device = crenel.Device("cuda:dry")
    context = ckks.Context(params, device)
    client = context.keygen()
    keys = client.evaluation_keys(bootstrap=True)
    boot = context.bootstrapper(keys)
    a = client.encrypt([0.5], level=boot.levels.input)
    result = boot.eager(a)
    held = context.device.pools().peak

    def launches() -> list[Any]:
        with crenel.profile(context) as account:
            boot.eager(a)
        return account.records()

    one = launches()
    # Devices of several parts exchange what is dropped as key switches wrote it: `divided_rows` is of a GPU
    # that exchanges nothing.
    device.optimisations = device.optimisations.replace(divided_rows=False)
    several = launches()
    ceilings = analyze.load_ceilings()
    bound = sum(
        max(*analyze.times(record, ceilings, memory), ceilings.launch)
        for record, memory in zip(one, analyze.memory_bytes(one, ceilings), strict=True)
    )
    ring_dim = 2 * params.slots
    found = model.Accounts(one, several, apart=True, alone=True)
    return _Account(found, ring_dim, bound, a.nbytes, result.nbytes, keys.nbytes, held)
