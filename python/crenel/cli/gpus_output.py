"""What ``crenel gpus`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crenel.cli.output import size, table


def head(name: str, one: Any, took: float, how: str, device: str) -> None:
    print(
        f"{name} on GPUs like one {device}: a bootstrap in {1e3 * took:.2f} ms ({how}), "
        f"{size(one.bytes_in)} in, {size(one.bytes_out)} out, keys {size(one.keys)}\n"
    )


def head_of_gates(name: str, one: Any, seconds: float, each: int, how: str, device: str) -> None:
    print(
        f"{name} on GPUs like one {device}: {each:,} gates in {1e3 * seconds:.2f} ms ({how}), "
        f"{size(one.nbytes)} an array of them, keys {size(one.keys)}\n"
    )


def spread(rows: Sequence[Any], title: str) -> None:
    header = (
        "GPUs",
        "batch",
        "a second",
        "times one",
        "ms of a batch",
        "of them links",
        "copies on the first",
    )
    table(
        header,
        [
            (
                *(str(r.gpus), str(r.batch), f"{r.rate:.0f}", f"{r.speedup:.2f}"),
                f"{1e3 * (r.compute + r.copies + r.within):.1f}",
                *(f"{1e3 * r.copies:.2f}", f"{1e3 * r.within:.2f}"),
            )
            for r in rows
        ],
        title=title,
    )
    print()


def divided(rows: Sequence[Any], alone: float, keys: int) -> None:
    told = []
    for r in rows:
        if r.gpus == 1 and r.way != "gathered":
            continue
        told.append(
            (
                *(str(r.gpus), r.way if r.gpus > 1 else "-", f"{1e3 * r.latency:.2f}"),
                *(f"{alone / r.latency:.2f}", f"{1e3 * r.overlapped:.2f}", f"{alone / r.overlapped:.2f}"),
                *(f"{1e3 * r.least:.2f}", f"{1e3 * r.links:.2f}", str(r.exchanges), size(r.peer_bytes)),
                size(keys // r.gpus),
            )
        )
    names = ("GPUs", "way", "ms", "times one", "ms overlapped", "times one", "ms without links", "ms links")
    table(
        (*names, "exchanges", "a GPU sends", "keys a GPU"),
        told,
        title="One ciphertext's limbs over GPUs (devices as cuda:0+1)",
    )


def planned(rows: Sequence[Any], alone: float, link: str) -> None:
    if not rows:
        return
    told = [
        (
            *(str(r.domain), str(r.hosts), str(r.gpus), f"{r.rate:,.0f}", f"{r.speedup:,.1f}"),
            *(f"{1e3 * r.latency:.2f}", f"{alone / r.latency:.2f}", f"{1e3 * r.compute:.2f}"),
            *(f"{1e3 * r.nvlink:.2f}", f"{1e3 * r.network:.2f}", f"{1e3 * r.nccl:.2f}"),
            "yes" if r.assumed else "no",
        )
        for r in rows
    ]
    names = ("domain", "domains", "GPUs", "a second", "times one", "ms of one", "times one", "ms compute")
    print()
    table(
        (*names, "ms NVLink", "ms network", "ms by NCCL", "links assumed"),
        told,
        title=f"NVLink domains, {link} between: bootstraps whole on a GPU; one bootstrap's limbs over all",
    )
