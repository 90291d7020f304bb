"""Builds and runs the Verilator bench of the wrapper.

usage: python3 -m fhecore.dv.unit [--tiles N] [--seed S] [--config paper|small] [--carry-save] [--long]
                                   [--work DIR] [--out FILE]

Quick is 3,000 tiles, --long 100,000 and every coverage bin must be hit. Exit code 0 when all holds. The
result (seed, measured latencies and intervals, coverage counts) is <work>/unit-<config>/result.json; --out
writes it with its provenance.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from fhecore import config
from fhecore.dv import stimulus, tools
from fhecore.provenance import provenance

QUICK_TILES, LONG_TILES = 3_000, 100_000


@dataclass(frozen=True)
class Build:
    """Which unit and where."""

    shape: config.Config
    carry_save: bool
    work: Path
    rtl: Path = tools.RTL

    @property
    def folder(self) -> Path:
        return self.work / f"unit-{self.shape.name}{'-carry-save' if self.carry_save else ''}"

    def parameters(self) -> dict[str, int]:
        """Parameters of the top module fhecore."""
        values = {macro: getattr(self.shape, field) for macro, field in config.MACROS.items()}
        return {**values, "CARRY_SAVE": int(self.carry_save), "CELLS": 0}


def compile_bench(build: Build, verilator: Path) -> Path:
    """The bench's executable. CompileError when a step fails, ConfigError for a shape
    without a wrapper."""
    build.shape.need_wrapper()
    command = [
        str(verilator), "--cc", "--exe", "-O3", "--x-assign", "unique",
        "--x-initial", "unique", "--top-module", "fhecore", "--prefix", "Vfhecore",
        *(f"-G{name}={value}" for name, value in build.parameters().items()),
        str(tools.RTL / "waivers.vlt"), str(Path(__file__).with_name("unit_public.vlt")), "-Wno-lint",
        "-y", str(build.rtl), f"-I{tools.RTL}", str(build.rtl / "fhecore.v"),
        str(Path(__file__).with_name("verilator_unit.cpp")),
        "-CFLAGS", f"-std=c++20 -O1 -I{tools.ROOT} -I{tools.ROOT / 'src'} -I{tools.ROOT / 'include'} "
        f"-DFHECORE_CONFIG_VALUES={','.join(str(getattr(build.shape, f)) for f in config.MACROS.values())}",
        "--Mdir", str(build.folder), "-o", "bench",
    ]  # fmt: skip
    tools.compile_bench(command, build.folder, build.work, tools.ONE_FILE)
    return build.folder / "bench"


def run(build: Build, verilator: Path, tiles: int, seed: int, require_coverage: bool) -> tuple[int, str]:
    """Exit code and output of a run of the bench."""
    bench = compile_bench(build, verilator)
    arguments = [str(tiles), str(seed), str(int(require_coverage)), str(build.folder / "result.json")]
    done = subprocess.run([str(bench), *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="fhecore.dv.unit", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tiles", type=int, help=f"random tiles, default {QUICK_TILES}, {LONG_TILES} with --long"
    )
    parser.add_argument("--seed", type=int, help="default: CRENEL_SEED, else a new one; printed")
    parser.add_argument("--config", choices=["paper", "small"], default="paper")
    parser.add_argument(
        "--carry-save", action="store_true", help="elements of modmul_pe_cs; builds for minutes"
    )
    parser.add_argument("--long", action="store_true", help="fail when a coverage bin stays empty")
    parser.add_argument("--work", type=Path, default=tools.WORK)
    parser.add_argument("--out", type=Path, help="JSON file to write when all holds")
    options = parser.parse_args(arguments)
    tool = tools.verilator(options.work)
    if tool.path is None:
        print(f"fhecore.dv.unit: {tool.reason}", file=sys.stderr)
        return 2
    tiles = options.tiles if options.tiles is not None else LONG_TILES if options.long else QUICK_TILES
    seed = options.seed if options.seed is not None else stimulus.run_seed()
    build = Build(config.load()[options.config], options.carry_save, options.work.resolve())
    code, text = run(build, tool.path, tiles, seed, options.long)
    print(text, end="")
    if code == 0 and options.out:
        record = {
            "kind": "crenel-fhecore-verification",
            "provenance": provenance(shlex.join(["python", "-m", "fhecore.dv.unit", *arguments])),
            "config": options.config,
            "elements": "carry-save" if options.carry_save else "behavioural",
            "simulator": os.environ.get("FHECORE_VERILATOR")
            or f"verilator {importlib.metadata.version('verilator')}",
            **json.loads((build.folder / "result.json").read_text()),
        }
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
