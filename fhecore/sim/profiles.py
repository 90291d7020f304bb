"""What collect.py brought back: profiled launches as traces of the model."""

from __future__ import annotations

import gzip
import json
import re
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from . import sass, trace

SECTOR, WORD_BYTES, BYTES_A_WAVEFRONT = 32, 16, 128
UNIFORM = 1.0  # sectors: all lanes read the same words
STORES, LOADS = ("STG", "ST", "RED"), ("LDG", "LD", "LDGSTS", "ATOMG")
CYCLES = ("sm__cycles_elapsed.max", "gpc__cycles_elapsed.max")
L2_READ = ("lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors_op_read.sum")


class ProfileError(ValueError):
    """A profile without what the model needs; the message names launch and counter."""


@dataclass
class Profiled:
    """One launch: its code, executed counts, what the hardware counted."""

    function: sass.Function
    usage: sass.Usage
    grid: int
    warps: int
    executed: list[int]  # by instruction, warp level
    metrics: dict[str, float]
    opcodes: dict[str, int] = field(default_factory=dict)
    accesses: dict[int, trace.Access] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Function name without namespaces, parameters and template arguments."""
        return base_name(self.function.name)

    def metric(self, *names: str) -> float:
        for n in names:
            if n in self.metrics:
                return self.metrics[n]
        raise ProfileError(f"{self.name}: none of {names} was measured")

    @property
    def cycles(self) -> float:
        return self.metric(*CYCLES)

    @property
    def instructions(self) -> int:
        """As counted by the hardware."""
        return round(self.metric("smsp__inst_executed.sum"))

    def launch(self, grid: int | None = None) -> trace.Launch:
        shared = self.usage.shared_bytes
        dynamic = self.metrics.get("launch__shared_mem_per_block_dynamic", 0.0)
        return trace.Launch(
            self.name,
            grid or self.grid,
            self.warps,
            round(self.metrics.get("launch__registers_per_thread", self.usage.registers)),
            round(shared + dynamic),
            self.accesses,
        )

    def walk(self) -> trace.Walk:
        return trace.Walk(self.function, trace.block_counts(self.function, self.executed), self.launch())


_MANGLED = re.compile(r"(\d+)")


def base_name(mangled: str) -> str:
    """column_forward of _ZN6crenel7backend4cuda14column_forwardILj16EE..."""
    rest = mangled.removeprefix("_Z").removeprefix("N")
    name = mangled
    while found := _MANGLED.match(rest):
        size = int(found.group(1))
        name, rest = rest[found.end() : found.end() + size], rest[found.end() + size :]
    return name


def hit_rates(metrics: dict[str, float]) -> tuple[float, float, float]:
    """Fractions of a launch: loaded sectors that L1 has, sectors asked of L2 that DRAM need not deliver,
    stored sectors that do not reach DRAM."""
    loaded = metrics.get("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 0.0)
    hits = metrics.get("l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum", 0.0)
    l1 = min(1.0, hits / loaded) if loaded else 0.0
    asked = SECTOR * next((metrics[n] for n in L2_READ if n in metrics), 0.0)
    l2 = 1 - min(1.0, metrics.get("dram__bytes_read.sum", 0.0) / asked) if asked else 1.0
    stored = SECTOR * metrics.get("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", 0.0)
    kept = 1 - min(1.0, metrics.get("dram__bytes_write.sum", 0.0) / stored) if stored else 1.0
    return l1, l2, kept


def accesses(
    code: Sequence[sass.Instruction], by_pc: dict, metrics: dict[str, float]
) -> dict[int, trace.Access]:
    """Sectors and wavefronts of every memory instruction from its own counters; hits are the launch's."""

    def column(name: str) -> dict[int, float]:
        return {int(offset) // WORD_BYTES: value for offset, value in by_pc.get(name, [])}

    executed, sectors = column("inst_executed"), column("memory_l2_theoretical_sectors_global")
    shared = column("memory_l1_wavefronts_shared")
    out = {}
    for k, i in enumerate(code):
        count = executed.get(k, 0.0)
        if not count:
            continue
        if i.base in ("LDS", "STS", "LDSM"):
            out[k] = trace.Access(0.0, max(1.0, shared.get(k, count) / count))
        elif i.base in (*STORES, *LOADS):
            own = sectors.get(k, 0.0) / count
            out[k] = trace.Access(own, max(1.0, own * SECTOR / BYTES_A_WAVEFRONT))
    return with_hits(code, executed, out, hit_rates(metrics))


def with_hits(
    code: Sequence[sass.Instruction],
    executed: dict[int, float],
    moved: dict[int, trace.Access],
    rates: tuple[float, float, float],
) -> dict[int, trace.Access]:
    """Hit rates of single instructions from those of the launch (`hit_rates`), which is all that is counted.
    What is read again and again hits first: words that all lanes share, then tables (loads marked read-only),
    then data."""
    l1, l2, kept = rates
    stores = {k for k, a in moved.items() if a.sectors and code[k].base in STORES}
    loads = {k: a.sectors * executed[k] for k, a in moved.items() if a.sectors and k not in stores}
    past = {k for k in loads if code[k].base == "LDGSTS" and "BYPASS" in code[k].opcode}

    def order(k: int) -> int:
        return 0 if moved[k].sectors <= UNIFORM else 1 if code[k].opcode.endswith(".CONSTANT") else 2

    def shares(asked: dict[int, float], rate: float) -> dict[int, float]:
        out, hits = {}, rate * sum(asked.values())
        for step in range(3):
            own = [k for k in asked if order(k) == step]
            total = sum(asked[k] for k in own)
            out |= dict.fromkeys(own, min(1.0, hits / total) if total else 0.0)
            hits = max(0.0, hits - total)
        return out

    in_l1 = shares({k: n for k, n in loads.items() if k not in past}, l1) | dict.fromkeys(past, 0.0)
    in_l2 = shares({k: n * (1 - in_l1[k]) for k, n in loads.items()}, l2)
    out = dict(moved)
    for k in loads:
        out[k] = replace(moved[k], l1_hit=in_l1[k], l2_hit=in_l2[k])
    for k in stores:
        out[k] = replace(moved[k], l1_hit=0.0, l2_hit=kept)
    return out


def in_place_of(old: Profiled, new: Profiled) -> Profiled:
    """`new` with the DRAM traffic of `old`, which it replaces in a sequence: it finds the same data in L2.
    (Its own profile was taken alone.)"""
    traffic = {
        n: old.metrics[n] for n in ("dram__bytes_read.sum", "dram__bytes_write.sum") if n in old.metrics
    }
    executed = dict(enumerate(map(float, new.executed)))
    rates = hit_rates({**new.metrics, **traffic})
    return replace(new, accesses=with_hits(new.function.code, executed, new.accesses, rates))


def read_listing(path: Path) -> dict[str, sass.Function]:
    with gzip.open(path, "rt") as file:
        return sass.parse(file.read())


def read(profile: Path, listing: Path, usage: Path) -> list[Profiled]:
    """Launches in order. ProfileError where a launch has no counts by instruction or no code in the
    listing."""
    functions, usages = read_listing(listing), sass.parse_usage(usage.read_text())
    with gzip.open(profile, "rt") as file:
        launches = json.load(file)["launches"]
    out = []
    for n, entry in enumerate(launches):
        function = functions.get(entry["function"])
        if function is None:
            raise ProfileError(f"launch {n}: {entry['function']} is not in {listing.name}")
        rows = entry["by_pc"].get("inst_executed")
        if not rows:
            raise ProfileError(f"launch {n}, {base_name(function.name)}: no counts by instruction")
        executed = [0] * len(function.code)
        for offset, value in rows:
            if offset // WORD_BYTES < len(executed):
                executed[offset // WORD_BYTES] = round(value)
        metrics = entry["metrics"]
        grid, block = metrics.get("launch__grid_size"), metrics.get("launch__block_size")
        if grid is None or block is None:
            raise ProfileError(f"launch {n}: neither launch__grid_size nor launch__block_size")
        found = Profiled(
            function, usages[entry["function"]], round(grid), -(-round(block) // 32), executed, metrics,
            {k: round(v) for k, v in entry["opcodes"].items()},
        )  # fmt: skip
        found.accesses = accesses(function.code, entry["by_pc"], metrics)
        out.append(found)
    return out


def unpack(tar: Path, folder: Path) -> Path:
    """The files of collect.py's tar; names that would leave the folder are refused."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(tar) as archive:
        for member in archive.getmembers():
            if not member.isfile() or "/" in member.name or member.name.startswith("."):
                raise ProfileError(f"{tar}: unexpected member {member.name!r}")
            source = archive.extractfile(member)
            (folder / member.name).write_bytes(source.read())
    return folder
