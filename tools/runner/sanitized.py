"""The part of ./run test under AddressSanitizer and UndefinedBehaviorSanitizer: the loaders' and the threaded
tests always, those of what changed as far as their files are few and time lasts, and every fuzzer for some
seconds.

What changed has a program of its own (tests/support/time_budget.cpp) that begins no test after SECONDS. Those
are skips with that reason; the order is random, so that they are not the same every time. A test that does
not end fails the program, by ctest's limit, and is named.

One build of the library serves all: with clang++ instrumented for the fuzzers too, with another compiler
without them, which is said. ./run test --sanitize runs the whole suite under sanitizers, ./run fuzz longer.
"""

from __future__ import annotations

import random
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

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
PROGRAM, CHANGED = "sanitized_tests", "sanitized_changed_tests"
ALWAYS = ("tests/unit/serialize",)
THREADED = re.compile(r"std::(jthread|thread|async)\b")
KINDS = ("unit", "conformance", "integration")  # property and golden tests need files and libraries besides
MOST = 8  # further test files, because something changed: each costs seconds to compile
# Of their tests: none is begun later; tests/CMakeLists.txt has the limit that ends a hanging one.
SECONDS = 60
# What takes minutes under sanitizers, or what they themselves get in the way of; said in the output.
LEFT_OUT = {
    "*ResealedMutations*": "the fuzzers do that better",
    "*SameBitsAsRef*:CkksDevices.*OfRef*": "minutes of ref's bootstrapping; ./run test --sanitize runs them",
    "Tenants.*": "minutes of bootstrapping; ./run test --sanitize runs it",
    "SecretMemory.*": "AddressSanitizer makes mlock do nothing",
    "*SecretPages.AreLockedAndNotDumped*": "likewise",
    "Forks.AChildOfAWorkingProcess*": "a child waits for ever where another thread held AddressSanitizer's "
    "allocator at the fork, which it does not know of before LLVM 17",
    "TfheCircuitCacheInUse.Forks": "likewise",
}
DEVICES = "cpu"  # ref takes minutes: ./run test --sanitize runs it
FUZZ_SECONDS = 30  # of all fuzzers together, one after the other on each core
LEAST_SECONDS = 3  # of one
# Words of tests/support/time_budget.cpp.
LATE, RUNNING = "under sanitizers was over", re.compile(r"^running (\S+)$", re.MULTILINE)
COVERED = re.compile(r"\bcov: (\d+)")


class Choice(NamedTuple):
    """Test files to build: `always`, and `more` because of what changed; `why` says it."""

    always: list[str]
    more: list[str]
    why: str


def choose(root: Path, found: changes.Changes) -> Choice:
    """`always` is the same whatever changed."""
    files = {
        f.relative_to(root).as_posix(): f
        for kind in KINDS
        for f in (root / "tests" / kind).rglob("*_test.cpp")
    }
    threaded = {name for name, f in files.items() if THREADED.search(f.read_text(errors="replace"))}
    always = {name for name in files if name.startswith(ALWAYS)} | threaded
    why = [f"the loaders' and the threaded tests ({len(always)} files)", found.why]
    touched = [_tests_of(name, files) for name in found.files or []]
    nearest = [t for tests in sorted(touched, key=len) for t in tests]  # a file's own test before a folder's
    more = [name for name in dict.fromkeys(nearest) if name not in always]
    if found.files is not None:
        why.append(f"{len(more[:MOST])} further files for what changed")
    if len(more) > MOST:
        why.append(f"{len(more) - MOST} left to ./run test --sanitize: {', '.join(more[MOST:])}")
    return Choice(sorted(always), sorted(more[:MOST]), "; ".join(why))


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
    chosen = choose(ROOT, changes.changes())
    say(f"   sanitized: {chosen.why}")
    settings = {**SETTINGS, "CRENEL_SANITIZED_TESTS": ";".join(chosen.always)}
    settings["CRENEL_SANITIZED_CHANGED_TESTS"] = ";".join(chosen.more)
    settings["CRENEL_BUILD_FUZZERS"] = "ON" if fuzzers else "OFF"
    settings["CMAKE_CXX_FLAGS"] = "-fsanitize=fuzzer-no-link" if fuzzers else ""
    targets = [PROGRAM, *([CHANGED] if chosen.more else []), *(["tests/fuzz/all"] if fuzzers else [])]
    package.build(package.Toolchain(compiler, None), BUILD, settings, "sanitized", tuple(targets))
    for tests, why in LEFT_OUT.items():
        say(f"   left out: {tests}: {why}")
    _tests(PROGRAM, total, extra)
    if chosen.more:
        seed = random.randint(1, 99999)
        say(f"   tests of what changed: for {SECONDS} s, GTEST_SHUFFLE=1 GTEST_RANDOM_SEED={seed}")
        limits = {"CRENEL_TEST_SECONDS": str(SECONDS), "GTEST_SHUFFLE": "1", "GTEST_RANDOM_SEED": str(seed)}
        _tests(CHANGED, total, {**extra, **limits})
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


def _tests(program: str, total: Counts, extra: dict[str, str], build: Path = BUILD) -> None:
    """ctest counts an absent program as a failure. No test at all is one too, but where those of what changed
    are all left out or skipped."""
    counts = Counts()
    extra = {**extra, "CRENEL_DEVICES": DEVICES, "GTEST_FILTER": "-" + ":".join(LEFT_OUT)}
    ctests.run(build, "", extra, counts, f"^{program}$", program)
    late = [skip for skip in counts.skips if LATE in skip.reason]
    if late:
        remember(
            f"{len(late)} tests of what changed were not begun under sanitizers within {SECONDS} s: "
            "./run test --sanitize runs them"
        )
    if counts.passed + counts.failed == 0 and program != CHANGED:
        counts.add_one(f"{program}: no test ran under the sanitizers", passed=False)
    elif counts.passed + counts.failed == 0:
        remember("no test of what changed ran under sanitizers: all were left out or skipped")
    counts.failures = [f"{name}{_unended(name)}" for name in counts.failures]
    total.merge(counts)


def _unended(program: str) -> str:
    """Of a program that ctest ended: the test that ran then, as far as the program names its tests."""
    log = LOGS / f"{program}.log"
    text = log.read_text(errors="replace") if log.exists() else ""
    running = RUNNING.findall(text) if "***Timeout" in text else []
    return f": {running[-1]} did not end" if running else ""


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
