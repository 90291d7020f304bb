"""``crenel gpus``: what several GPUs of one host would do with bootstraps, by the traffic account."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from crenel.errors import ParameterError


@dataclass(frozen=True)
class _Account:
    """One bootstrap of batch 1 on one GPU."""

    records: list[Any]
    ring_dim: int
    bound: float
    bytes_in: int
    bytes_out: int
    keys: int
    held: int


def gpus(
    parameters: Annotated[str, typer.Argument(metavar="PARAMS", help="A name of crenel params list.")],
    counts: Annotated[str, typer.Option("--gpus", help="How many, by commas.")] = "1,2,4,8",
    each: Annotated[int, typer.Option(help="Bootstraps a GPU in a batch.", min=1)] = 32,
    measured_ms: Annotated[
        float | None,
        typer.Option(help="What one bootstrap takes on one GPU; default the account's bound."),
    ] = None,
    launch_us: Annotated[
        float,
        typer.Option(min=0.0, max=1000.0, help="What a divided launch takes besides its work, in us."),
    ] = 0.0,
    file: Annotated[Path | None, typer.Option("--json", help="Write the figures to a new file.")] = None,
) -> None:
    """Say what several GPUs would bring: bootstraps spread over them, or one bootstrap's limbs.

    No GPU is needed. Rates of caches, multipliers and links are those measured on H200s; docs/guide/gpus.md
    has the assumptions.
    """
    from crenel import analyze
    from crenel import gpus as model
    from crenel.cli.output import numbers

    of_gpus = numbers(counts, "--gpus")
    if measured_ms is not None and not 0 < measured_ms < float("inf"):
        raise ParameterError(
            f"measured-ms is {measured_ms}, expected a positive time", {"measured_ms": measured_ms}
        )
    from crenel.cli.output import expect_new

    expect_new(file)
    ceilings, links = analyze.load_ceilings(), model.load_links()
    one = _account(parameters)
    took = one.bound if measured_ms is None else 1e-3 * measured_ms
    spread = [model.spread(took, one.bytes_in, one.bytes_out, n, each, links) for n in of_gpus]
    divided = [
        model.divided(one.records, one.ring_dim, n, way, ceilings, links, 1e-6 * launch_us)
        for way in ("gathered", "aggregated")
        for n in of_gpus
    ]
    alone = one.bound + 1e-6 * launch_us * len(one.records)
    _print(parameters, one, took, alone, measured_ms is not None, spread, divided, ceilings.device)
    if file is not None:
        facts = {"kind": "crenel-gpus", "format": 1, "params": parameters, "device": ceilings.device}
        one_facts = {k: v for k, v in asdict(one).items() if k != "records"}
        file.write_text(
            json.dumps(
                {
                    **facts,
                    "one": {**one_facts, "seconds": took, "launches": len(one.records)},
                    "launch_us": launch_us,
                    "links": analyze.data()["links"],
                    "spread": [asdict(row) for row in spread],
                    "divided": [asdict(row) for row in divided],
                },
                indent=1,
            )
            + "\n",
            encoding="utf-8",
        )


def _account(parameters: str) -> _Account:
    import crenel
    from crenel import analyze, ckks

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ckks.InsecureParametersWarning)
        params = ckks.preset(parameters, allow_insecure=True)
    context = ckks.Context(params, device="cuda:dry")
    client = context.keygen()
    keys = client.evaluation_keys(bootstrap=True)
    boot = context.bootstrapper(keys)
    a = client.encrypt([0.5], level=boot.levels.input)
    result = boot.eager(a)
    with crenel.profile(context) as account:
        boot.eager(a)
    records = account.records()
    ceilings = analyze.load_ceilings()
    bound = sum(
        max(*analyze.times(record, ceilings, memory), ceilings.launch)
        for record, memory in zip(records, analyze.memory_bytes(records, ceilings), strict=True)
    )
    held = context.device.pools().peak
    ring_dim = 2 * params.slots
    return _Account(records, ring_dim, bound, a.nbytes, result.nbytes, keys.nbytes, held)


def _print(
    name: str,
    one: _Account,
    took: float,
    alone: float,
    measured: bool,
    spread: Any,
    divided: Any,
    device: str,
) -> None:
    from crenel.cli.output import size, table

    how = "measured" if measured else "the account's bound: what is possible at most"
    print(
        f"{name} on GPUs like one {device}: a bootstrap in {1e3 * took:.2f} ms ({how}), "
        f"{size(one.bytes_in)} in, {size(one.bytes_out)} out, keys {size(one.keys)}\n"
    )
    table(
        ("GPUs", "batch", "a second", "times one", "ms of a batch", "of them links"),
        [
            (
                *(str(r.gpus), str(r.batch), f"{r.rate:.0f}", f"{r.speedup:.2f}"),
                *(f"{1e3 * (r.compute + r.copies):.1f}", f"{1e3 * r.copies:.2f}"),
            )
            for r in spread
        ],
        title="Ciphertexts spread over GPUs, all keys on each (ckks.DevicePool)",
    )
    print()
    rows = []
    for r in divided:
        if r.gpus == 1 and r.way != "gathered":
            continue
        rows.append(
            (
                *(str(r.gpus), r.way if r.gpus > 1 else "-", f"{1e3 * r.latency:.2f}"),
                *(f"{alone / r.latency:.2f}", f"{1e3 * r.overlapped:.2f}", f"{alone / r.overlapped:.2f}"),
                *(f"{1e3 * r.least:.2f}", f"{1e3 * r.links:.2f}", str(r.exchanges), size(r.peer_bytes)),
                size(one.keys // r.gpus),
            )
        )
    table(
        (
            "GPUs",
            "way",
            "ms",
            "times one",
            "ms overlapped",
            "times one",
            "ms without links",
            "ms links",
            "exchanges",
            "a GPU sends",
            "keys a GPU",
        ),  # fmt: skip
        rows,
        title="One ciphertext's limbs over GPUs (a model of devices as cuda:0+1)",
    )
