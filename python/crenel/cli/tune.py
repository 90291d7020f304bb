"""``crenel tune``: the numbers that a GPU's launches go by, found for the GPU at hand."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Annotated

import typer


def tune(
    device: Annotated[
        str, typer.Option(help="cuda, cuda:<index>, or GPUs that share each ciphertext, as cuda:0+1.")
    ] = "cuda",
    file: Annotated[Path | None, typer.Option("--json", help="Write the tuning to a new file.")] = None,
    parameters: Annotated[str, typer.Option("--params", help="Of CKKS, that is timed.")] = "leveled-n16-s40",
    gates: Annotated[
        str, typer.Option(help="Of TFHE, that is timed on one GPU; none to leave it out.")
    ] = "std128",
    repeats: Annotated[int, typer.Option(help="Times that each is timed, at most.", min=1)] = 9,
    seconds: Annotated[float, typer.Option(help="Of timing one workload once, about.", min=0)] = 0.05,
    seed: Annotated[int | None, typer.Option(help="Of the values; fresh ones by default.", min=0)] = None,
) -> None:
    """Find the numbers that this GPU's launches should go by (minutes), and store them as data:
    crenel.tuned(device, file) opens a device with them. They change times and no bit of a result, which is
    checked. Nothing is stored where what the GPU began with is as fast.
    """
    import crenel
    from crenel import tuning
    from crenel._crenel import default_tuning
    from crenel.cli.output import expect_new, say, table
    from crenel.records import command_line, provenance
    from crenel.tuning_times import Workloads

    expect_new(file)
    on = crenel.Device(device)
    start = tuning.Choice(default_tuning(on))  # refuses devices that have none
    began = time.perf_counter()
    of_values = secrets.randbits(32) if seed is None else seed
    if on.parts and gates != "none":
        print(f"no gates: {on.name} shares ciphertexts of CKKS alone")
        gates = "none"
    workloads = Workloads(on, parameters, None if gates == "none" else gates, repeats, seconds, of_values)
    workloads.times(start)  # warms the device, and is what later bits are compared with
    best, steps = tuning.search(workloads.times, start, say=say)
    before, after = workloads.times(start), workloads.times(best)
    say("")
    print(f"{on.description}: {len(steps)} trials in {time.perf_counter() - began:.0f} s")
    rows = [[s.name, str(s.value), f"{s.score:.3f}", "taken" if s.taken else ""] for s in steps]
    table(["number", "value", "time", ""], rows, title="times of those that it changes, over the best before")
    print()
    table(["us", "before", "after"], [[n, f"{before[n]:.1f}", f"{after[n]:.1f}"] for n in before])
    if best == start:
        print("nothing was faster: the device keeps what it began with, and nothing is stored")
        return
    where = {**provenance(on, command_line()), "seed": of_values}
    found = tuning.Tuning(on.description, on.processors, best, tuple(steps), before, after, where)
    if file is not None:
        file.write_text(found.to_json(), encoding="utf-8")
        print(f'wrote {file}: crenel.tuned("{device}", "{file}") opens the device with it')
