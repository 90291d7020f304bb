"""clang-tidy (.clang-tidy) over src/ and python/src: all of it in ./run lint, what changed in ./run test.

What was found clean is remembered in build/tidy/clean by a hash of the source, everything of the repository
that it includes, the checks and the tool. CUDA sources are left out: nvcc's language is not clang-tidy's.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from runner import changes, env, package
from runner.counts import Counts
from runner.shell import ROOT, Stop, capture, environment, files_below, remember, say

BUILD = ROOT / "build" / "tidy"
CLEAN = BUILD / "clean"
CONFIG = ".clang-tidy"
FOLDERS = ("src", "python/src")
READ = ("include", "src", "python/src", "fhecore/model", "bench/harness", "bench/boot", "bench/tfhe")
SETTINGS = {"CRENEL_BUILD_TESTS": "OFF", "CRENEL_BUILD_PYTHON": "ON"}


class Plan(NamedTuple):
    """Sources to check, in this order, and why these."""

    sources: list[str]
    why: str


def whole(sources: list[str]) -> Plan:
    return Plan(sources, f"all {len(sources)} sources")


def changed(sources: list[str], includes: changes.Includes, found: changes.Changes, salt: str) -> Plan:
    """Changed sources, and for each changed header one source that reads it. Where everything counts as
    changed: all, beginning at a place that differs from commit to commit (`salt`). Changed checks are for
    ./run lint: a minute of them reaches a part of all sources that nobody chose."""
    if found.files is None:
        start = int(hashlib.sha256(salt.encode()).hexdigest(), 16) % max(1, len(sources))
        return Plan(sources[start:] + sources[:start], f"{found.why}; beginning with source {start + 1}")
    own = [name for name in found.files if name in sources]
    headers = [name for name in found.files if name in includes.known and name not in sources]
    readers = [reader for header in headers if (reader := includes.reader(header, sources))]
    chosen = list(dict.fromkeys(own + readers))
    return Plan(chosen, f"{found.why}: {len(own)} sources, {len(headers)} headers read through their users")


def check(plan_of: str, seconds: float = float("inf")) -> tuple[int, int]:
    """Sources with findings, and sources checked. `plan_of`: "whole" or "changed"; no source is begun after
    `seconds`, and what that left out is said."""
    env.pip_install("build", "tidy")
    tool = env.tool("clang-tidy")
    commands = _commands()
    sources = sorted(commands)
    read = [f.relative_to(ROOT).as_posix() for d in READ for f in files_below(ROOT / d)]
    includes = changes.Includes(ROOT, [f for f in read if f.endswith((".h", ".cpp"))])
    if plan_of == "whole":
        plan = whole(sources)
    else:
        salt = changes.git("rev-parse", "HEAD", root=ROOT) or str(len(sources))
        plan = changed(sources, includes, changes.changes(ROOT), salt)
    say(f"   clang-tidy: {plan.why}")
    options = _options()
    version = f"{capture([tool, '--version'])} {options}"
    CLEAN.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + seconds

    def one(source: str) -> str | None:
        """ "" when clean, findings, or None where time was up."""
        stamp = CLEAN / _key(source, commands[source], includes, version)
        if stamp.exists():
            return ""
        if time.monotonic() > end:
            return None
        command = [tool, "-p", str(BUILD), "--quiet", *options, source]
        done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)
        if done.returncode:
            return done.stdout + done.stderr
        stamp.touch()
        return ""

    with ThreadPoolExecutor(env.jobs()) as pool:
        results = list(pool.map(one, plan.sources))
    bad = [(s, r) for s, r in zip(plan.sources, results, strict=True) if r]
    late = results.count(None)
    for source, findings in bad:
        say(f"{source}:\n{findings.strip()}")
    say(f"   clang-tidy: {len(results) - late} checked, {len(bad)} with findings")
    if late:
        say(f"   {late} more were not begun within {seconds:.0f} s; ./run lint checks all")
    return len(bad), len(results) - late


def count(total: Counts, seconds: float) -> None:
    """What changed, as one test. Without clang-tidy it is left out aloud; CRENEL_REQUIRE=tidy fails then."""
    try:
        env.pip_install("tidy")
    except Stop as stop:
        if env.required("tidy"):
            raise
        remember(f"clang-tidy did not run: {stop}")
        return
    bad, _ = check("changed", seconds)
    total.add_one(f"clang-tidy: {bad} sources with findings" if bad else "clang-tidy", passed=not bad)


def _commands() -> dict[str, str]:
    """Source -> its compile command, from a configured build without CUDA; nothing is compiled for it."""
    package.configure(package.Toolchain(env.compiler(), None), BUILD, SETTINGS, "tidy")
    listing = json.loads((BUILD / "compile_commands.json").read_text())
    found = {}
    for entry in listing:
        file = Path(entry["file"])
        name = file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else ""
        if name.startswith(tuple(f"{folder}/" for folder in FOLDERS)):
            found[name] = entry["command"]
    if not found:
        raise Stop("clang-tidy: the build lists no source of src/ or python/src")
    return found


def _options() -> list[str]:
    """The compilers' <omp.h> is not in clang-tidy's package: GCC's, behind all else."""
    header = capture(["g++", "-print-file-name=include/omp.h"]) or ""
    return [f"--extra-arg=-idirafter{Path(header).parent}"] if Path(header).is_absolute() else []


def _key(source: str, command: str, includes: changes.Includes, version: str) -> str:
    digest = hashlib.sha256("\0".join([source, command, version]).encode())
    for name in [CONFIG, *includes.behind(source)]:
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256((ROOT / name).read_bytes()).digest())
    return digest.hexdigest()
