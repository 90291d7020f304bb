"""How many workers a cluster is asked for, and what part of a GPU each of them has."""

from __future__ import annotations

from dataclasses import dataclass

from crenel.errors import DeviceError, ParameterError

GRAINS = 10_000  # parts of a GPU: Ray counts no smaller ones


@dataclass(frozen=True)
class Placing:
    """Workers of one kind."""

    device: str
    """As each of them names it: a worker sees the GPU that it was given, and no other."""
    replicas: int
    gpu: float
    """Part of a GPU that is promised to each, so that no more share one than were asked for; 0: none."""


def expect_workers(workers: int) -> None:
    """Raises ParameterError for a number that nobody can be asked for."""
    if not 1 <= workers <= GRAINS:
        raise ParameterError(f"{workers} workers, expected 1 to {GRAINS}", {"value": workers})


def placed(device: str, workers: int, gpus: int) -> Placing:
    """Workers for a cluster.

    device : "cpu" or "ref"; "cuda": every GPU; "auto": the same, or the CPU where there is none
    workers : of one GPU; of the CPU, all of them
    gpus : that there are

    Raises ParameterError for another device or number, DeviceError for "cuda" without a GPU.
    """
    expect_workers(workers)
    if device == "auto":
        device = "cuda" if gpus else "cpu"
    if device in ("cpu", "ref"):
        return Placing(device, workers, 0.0)
    if device != "cuda":
        raise ParameterError(
            f"a cluster places workers itself: device auto, cpu, ref or cuda, not {device}",
            {"name": "device", "value": device},
        )
    if not gpus:
        raise DeviceError("device cuda: the cluster has no GPU that is free", {"device": device})
    return Placing("cuda:0", workers * gpus, (GRAINS // workers) / GRAINS)
