"""The part of ./run test under AddressSanitizer and UndefinedBehaviorSanitizer: the loaders' and the threaded
tests always, the tests of what changed as far as there are few, and every fuzzer for some seconds.

One build of the library serves all: with clang++ instrumented for the fuzzers too, with another compiler
without them, which is said. ./run test --sanitize runs the whole suite under sanitizers, ./run fuzz longer.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from runner import changes, ctests, env, fuzzing, package
from runner.counts import Counts
from runner.shell import LOGS, ROOT, Stop, remember, run_logged, say

BUILD = ROOT / "build" / "sanitized"
SETTINGS = {
    "CRENEL_BUILD_TESTS": "ON",
    "CRENEL_CUDA": "OFF",
    "CRENEL_SANITIZE": "address,undefined",
    "CMAKE_CXX_FLAGS_RELEASE": "-O1 -g1",  # with assertions, and lines alone of debug information
    "CRENEL_TEST_OPTIONS": "-O0",
}
PROGRAM = "sanitized_tests"
ALWAYS = ("tests/unit/serialize",)
THREADED = re.compile(r"std::(jthread|thread|async)\b")
KINDS = ("unit", "conformance", "integration")  # property and golden tests need files and libraries besides
MOST = 8  # further test files, because something changed: each costs seconds to compile and to run
# What takes minutes under sanitizers, or what they themselves get in the way of; said in the output.
LEFT_OUT = {
    "*ResealedMutations*": "the fuzzers do that better",
    "Tenants.*": "minutes of bootstrapping; ./run test --sanitize runs it",
    "SecretMemory.*": "AddressSanitizer makes mlock do nothing",
    "*SecretPages.AreLockedAndNotDumped*": "likewise",
    "Forks.AChildOfAWorkingProcess*": "a child waits for ever where another thread held AddressSanitizer's "
    "allocator at the fork, which it does not know of before LLVM 17",
}
DEVICES = "cpu"  # ref takes minutes: ./run test --sanitize runs it
FUZZ_SECONDS = 30  # of all fuzzers together, one after the other on each core
LEAST_SECONDS = 3  # of one
COVERED = re.compile(r"\bcov: (\d+)")


def choose(root: Path, found: changes.Changes) -> tuple[list[str], str]:
    """Test files to build, and the words that say why."""
    files = {
        f.relative_to(root).as_posix(): f
        for kind in KINDS
        for f in (root / "tests" / kind).rglob("*_test.cpp")
    }
    threaded = {name for name, f in files.items() if THREADED.search(f.read_text(errors="replace"))}
    always = {name for name in files if name.startswith(ALWAYS)} | threaded
    why = [f"the loaders' and the threaded tests ({len(always)} files)", found.why]
    touched = [t for name in found.files or [] for t in _tests_of(name, files)]
    more = [name for name in dict.fromkeys(touched) if name not in always]
    if found.files is not None:
        why.append(f"{len(more[:MOST])} further files for what changed")
    if len(more) > MOST:
        why.append(f"{len(more) - MOST} left to ./run test --sanitize: {', '.join(more[MOST:])}")
    return sorted(always | set(more[:MOST])), "; ".join(why)


def _tests_of(name: str, files: dict[str, Path]) -> list[str]:
    """A changed test is its own; of a changed source the test of its name, else those of its folder."""
    if name in files:
        return [name]
    path = Path(name)
    for top in ("src", "include/crenel"):
        if not path.is_relative_to(top):
            continue
        folder = (Path("tests/unit") / path.relative_to(top)).parent
        own = (folder / f"{path.stem}_test.cpp").as_posix()
        return [own] if own in files else sorted(f for f in files if Path(f).parent == folder)
    return []


def run(total: Counts, extra: dict[str, str]) -> None:
    """Builds and runs with this environment; counts the tests, and each fuzzer as one."""
    compiler, fuzzers = _compiler()
    chosen, why = choose(ROOT, changes.changes())
    say(f"   sanitized: {why}")
    settings = {**SETTINGS, "CRENEL_SANITIZED_TESTS": ";".join(chosen)}
    settings["CRENEL_BUILD_FUZZERS"] = "ON" if fuzzers else "OFF"
    settings["CMAKE_CXX_FLAGS"] = "-fsanitize=fuzzer-no-link" if fuzzers else ""
    targets = (PROGRAM, *(["tests/fuzz/all"] if fuzzers else []))
    package.build(package.Toolchain(compiler, None), BUILD, settings, "sanitized", targets)
    _tests(total, extra)
    if fuzzers:
        fuzz(total, extra)


def _compiler() -> tuple[str, bool]:
    """A clang++ that links a fuzzer, and True; else the compiler of the build and False, said aloud."""
    try:
        return fuzzing.compiler(), True
    except Stop as stop:
        if env.required("fuzz"):
            raise
        remember(f"the fuzzers did not run: {stop}")
        return env.compiler(), False


def _tests(total: Counts, extra: dict[str, str]) -> None:
    """ctest counts an absent program as a failure, and no test at all is one here."""
    counts = Counts()
    extra = {**extra, "CRENEL_DEVICES": DEVICES, "GTEST_FILTER": "-" + ":".join(LEFT_OUT)}
    for tests, why in LEFT_OUT.items():
        say(f"   left out: {tests}: {why}")
    ctests.run(BUILD, "", extra, counts, f"^{PROGRAM}$", "sanitized")
    if counts.passed + counts.failed == 0:
        counts.add_one(f"{PROGRAM}: no test ran under the sanitizers", passed=False)
    total.merge(counts)


def fuzz(total: Counts, extra: dict[str, str], build: Path = BUILD, seconds: int = FUZZ_SECONDS) -> None:
    """Every fuzzer of the build, from the committed corpora, as many at once as there are cores."""
    programs = fuzzing.programs(build, extra)
    if not programs:
        total.add_one("fuzzers: the build made none (tests/fuzz/fuzz_*)", passed=False)
        return
    each = max(LEAST_SECONDS, seconds * env.jobs() // len(programs))
    with ThreadPoolExecutor(env.jobs()) as pool:
        verdicts = list(pool.map(lambda program: _fuzz_one(build, program, each, extra), programs))
    for program, (problem, runs) in zip(programs, verdicts, strict=True):
        say(f"   {program.name}: {runs:,} inputs in {each} s{f': {problem}' if problem else ''}")
        total.add_one(f"{program.name}{f': {problem}' if problem else ''}", passed=not problem)


def _fuzz_one(build: Path, program: Path, seconds: int, extra: dict[str, str]) -> tuple[str, int]:
    """What went wrong, "" when nothing did, and how many inputs were run."""
    code = run_logged(fuzzing.command(build, program, seconds), program.name, env=extra, check=False)
    text = (LOGS / f"{program.name}.log").read_text(errors="replace")
    runs = max((int(n) for n in fuzzing.EXECUTED.findall(text)), default=0)
    if code:
        say("\n".join(text.splitlines()[-40:]))
        return f"exit code {code} (build/logs/{program.name}.log, input in {build / 'found'})", runs
    if runs == 0 or max((int(n) for n in COVERED.findall(text)), default=0) == 0:
        return "it ran nothing, or saw no coverage: the library is not instrumented", runs
    return "", runs
