"""Rows of records as goals read them: with what a suite says in words, against one GPU, or of a service."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from report import memory

Json = dict[str, Any]
BENCH, SERVICE = "crenel-bench", "crenel-service"
COUNTERS, COMPARISON = "counters", "boot-comparison"
# Of records that say no suite: their kinds.
SUITES = {"crenel-ncu-account": COUNTERS, "crenel-boot-comparison": COMPARISON}
BY_PART = ("boot", "boot_memory")
PART = " of its "  # of a GPU that a device has some multiprocessors of
MODEL = "model of an "  # how models of GPUs are described


class Head(NamedTuple):
    """What made a record."""

    date: str
    device: str
    changed: bool


def suite_of(data: Json) -> str | None:
    """None: of a kind that no goal is about."""
    if data["kind"] in (BENCH, SERVICE):
        return data.get("suite")
    return SUITES.get(data["kind"])


def switched_off(data: Json) -> bool:
    """Was an optimisation off, or were keys those without it, to tell what it brings?"""
    command = data.get("provenance", {}).get("command", "")
    return any(option in f"{command} " for option in ("--without ", "--plain-keys "))


def head(data: Json) -> Head:
    """Of a service the device where it computed, or the kind of processor."""
    if data["kind"] == SERVICE:
        device = data["results"].get("device") or f"processor of {data['host']['machine']}"
        return Head(data["date"], device.split(",")[0], False)
    p = data["provenance"]
    described = p.get("device_description") or p["device"]
    device = described.split(",")[0].split(" that ")[0]  # models say what they are not
    if PART in described:
        device = f"a part of one {device}"
    return Head(p.get("date", ""), device, bool(p.get("dirty")))


def rows(data: Json) -> list[Json]:
    """Of one record. `gpus`: how many a row is of, one where it is missing. Counters and comparisons are one
    row; a record of errors without times is of its configuration."""
    if data["kind"] == SERVICE:
        return [data["results"] | data["settings"] | dict(_service(data["settings"], data["results"]))]
    if suite_of(data) == COUNTERS:
        return [data["provenance"] | {"dram_bytes": sum(row["dram_bytes"] for row in data["rows"])}]
    if suite_of(data) == COMPARISON:
        return [{"params": data["crenel"][0]["params"]} | data]
    found = [_told(row) for row in data["results"] or filter(None, [data.get("configuration")])]
    of_parts = list(_memory(data)) if data["suite"] in BY_PART else []
    return [_of_several(row, found) for row in found] + of_parts


def _told(row: Json) -> Json:
    """The row, with what its suite says in words only."""
    if "what" in row and row["what"].split()[0].isdigit():
        row = {"count": int(row["what"].split()[0])} | row
    # of a program: what a running service takes, or where a record has the first call alone, that one
    seconds = row.get("warm_seconds") or row.get("seconds")
    if "workload" in row and seconds:
        row = {"call_seconds": seconds} | row
    count = row.get("count")
    if count and seconds:
        row = {"per_second": count / seconds} | row
    if row.get("amortised_us"):
        row = {"per_second": 1e6 / row["amortised_us"]} | row
    return row


def _of_several(row: Json, beside: list[Json]) -> Json:
    """Of a pool, and of one ciphertext on several GPUs: how many, and how many times as fast as one of the
    same record at its best, queued or replayed."""
    if "times_one_device" in row:
        return row | {"gpus": row["devices"], "correct": row.get("same_bits", True)}
    if "device" not in row or "latency_us" not in row:
        return row
    same = ("name", "params", "batch")
    alone = [
        r["latency_us"] for r in beside if "device" not in r and all(r.get(k) == row.get(k) for k in same)
    ]
    found = row | {"gpus": row["device"].count("+") + 1}
    return found | ({"times_one_device": min(alone) / row["latency_us"]} if alone else {})


def _memory(data: Json) -> Iterator[Json]:
    """Keys on the GPU of a device that has most of them, in per cent of those that one GPU has."""
    keys = {
        len(parts): max(memory.grown(part, "context", "keys", "in_use") or 0 for part in parts)
        for _, parts in memory.measured(data)
    }
    for count, most in keys.items():
        if count > 1 and keys.get(1):
            params = data.get("params") or data["results"][0]["params"]
            yield {"name": "memory", "params": params, "gpus": count, "key_share": 100 * most / keys[1]}


def _service(settings: Json, found: Json) -> Iterator[tuple[str, float]]:
    """What a goal is of, where the record has what it is made of."""
    if "right" in found:
        ended = min(found["jobs_in_database"], sum(found["states"].values()))
        yield "right_share", 100 * found["right"] / settings["requests"]
        yield "lost_count", settings["requests"] - ended
        yield "twice_count", max(0, found["jobs_in_database"] - settings["requests"])
    if "worker_died" in found:
        crashed = found["worker_died"] or not found["honest_client_right_afterwards"]
        yield "crash_count", found["errors_500"] + int(crashed)
        yield "leak_count", found["leaks"]
    if "equal_hash" in found:
        yield "unequal_count", int(not found["equal_hash"])
    for name, part in {
        "": found,
        "full_": found.get("full_resident") or found.get("queue_full") or {},
    }.items():
        if "share_of_the_library" in part:
            yield f"{name}library_share", 100 * part["share_of_the_library"]["median"]
