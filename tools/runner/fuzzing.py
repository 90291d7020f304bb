"""libFuzzer targets of tests/fuzz, under the address and undefined-behaviour sanitizers: what compiles them,
which there are and how one is called, for ./run fuzz (below) and for the part of ./run test (sanitized.py).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from runner import env, package
from runner.shell import ROOT, Stop, environment, run, run_logged, say, stage

BUILD = ROOT / "build" / "fuzz"
RECORD = BUILD / "executions.jsonl"
OPTIONS = {
    "CRENEL_BUILD_FUZZERS": "ON",
    "CRENEL_BUILD_TESTS": "OFF",
    "CRENEL_BUILD_BENCH": "OFF",
    "CRENEL_BUILD_PYTHON": "OFF",
    "CRENEL_CUDA": "OFF",
    "CRENEL_SANITIZE": "address,undefined",
    # The library too reports which branches an input takes: without that, mutation is blind.
    "CMAKE_CXX_FLAGS": "-fsanitize=fuzzer-no-link",
}
SEEDER = "fuzz_seeds"  # writes valid files for each of the others to start from
PROBE = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n'
# An allocation far above what a target's limits allow, or an input that takes this long, is a finding.
LIMITS = ["-malloc_limit_mb=64", "-rss_limit_mb=2048", "-timeout=20", "-max_len=65536"]
EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
ACCEPTED = re.compile(r"stat::accepted_loads:\s*(\d+)")


@dataclass
class Outcome:
    target: str
    executions: int
    accepted: int  # loads that passed every check
    seconds: float
    exit_code: int  # 0: nothing found


def options(arguments: list[str]) -> tuple[int, int | None]:
    """Seconds a target (default 60), and executions a target when that is what was asked for."""
    arguments, runs = list(arguments), None
    try:
        if "--runs" in arguments:
            at = arguments.index("--runs")
            runs = int(arguments[at + 1])
            del arguments[at : at + 2]
        seconds = int(arguments.pop(0)) if arguments else 60
        if arguments or seconds <= 0 or (runs is not None and runs <= 0):
            raise ValueError
    except (ValueError, IndexError):
        raise Stop("usage: ./run fuzz [SECONDS] [--runs N]: seconds a target, at most N executions") from None
    return seconds, runs


def compiler() -> str:
    """A clang++ that links a fuzzer, installed where we are root; Stop without one."""
    if found := _clang():
        return found
    why = "no clang++ that links libFuzzer was found"
    env.apt_install(["clang", "libclang-rt-dev"], why)
    if found := _clang():
        return found
    raise Stop(f"{why}, although Debian's clang was installed")


def _clang() -> str | None:
    for name in ("clang++", *(f"clang++-{version}" for version in range(21, 13, -1))):
        found = shutil.which(name)
        if found is None:
            continue
        command = [found, "-x", "c++", "-", "-fsanitize=fuzzer,address,undefined", "-o", "/dev/null"]
        if subprocess.run(command, input=PROBE, text=True, capture_output=True).returncode == 0:
            return found
    return None


def programs(build: Path, extra: dict[str, str] | None = None) -> list[Path]:
    """The fuzzers of a build, once they have valid files to start from."""
    found = sorted(p for p in build.glob("tests/fuzz/fuzz_*") if p.is_file() and p.stat().st_mode & 0o111)
    for seeder in (p for p in found if p.name == SEEDER):
        run_logged([seeder, build / "seeds"], SEEDER, env=extra)
    return [p for p in found if p.name != SEEDER]


def command(build: Path, program: Path, seconds: int) -> list:
    """One target, from the corpus it found so far, valid files of its kind, wire files and hostile ones."""
    target = program.name.removeprefix("fuzz_")
    corpus, seeds, found = build / "corpus" / target, build / "seeds" / target, build / "found"
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    source = ROOT / "tests" / "fuzz"
    words = [program, corpus, *([seeds] if seeds.is_dir() else []), source / "corpus"]
    words += [ROOT / "tests" / "golden" / "wire", *LIMITS, f"-dict={source / 'serialize.dict'}"]
    words += [f"-max_total_time={seconds}", "-print_final_stats=1", f"-artifact_prefix={found}/{target}-"]
    return words


def build() -> list[Path]:
    with stage("set up"):
        env.pip_install("build")
        clang = compiler()
    with stage("build"):
        package.build(package.Toolchain(clang, None), BUILD, OPTIONS, "fuzz")
    with stage("valid files to start from"):
        found = programs(BUILD)
    if not found:
        raise Stop("the build made no fuzzer (build/fuzz/tests/fuzz/fuzz_*)")
    if (tests := BUILD / "tests" / "fuzz" / "loader_tests").exists():
        with stage("unit tests of the loaders, under the same sanitizers"):
            run([tests, "--gtest_brief=1"], env={"CRENEL_DEVICES": "ref"})
    return found


def fuzz_one(program: Path, seconds: int, runs: int | None) -> Outcome:
    """One run, written down."""
    target = program.name.removeprefix("fuzz_")
    words = [*command(BUILD, program, seconds), *([] if runs is None else [f"-runs={runs}"])]
    start = time.monotonic()
    log = BUILD / f"{target}.log"
    with log.open("w", errors="replace") as out:
        code = subprocess.run(
            [str(w) for w in words], stdout=out, stderr=subprocess.STDOUT, cwd=ROOT, env=environment()
        ).returncode
    text = log.read_text(errors="replace")
    executed, accepted = (int((pattern.findall(text) or [0])[-1]) for pattern in (EXECUTED, ACCEPTED))
    if code:
        say(text[-4000:])
    outcome = Outcome(target, executed, accepted, time.monotonic() - start, code)
    with RECORD.open("a") as record:
        record.write(json.dumps(asdict(outcome)) + "\n")
    return outcome


def totals() -> dict[str, Outcome]:
    """Sums over all runs in this build folder; the exit code is that of the last finding."""
    sums: dict[str, Outcome] = {}
    for line in RECORD.read_text().splitlines():
        one = Outcome(**{"accepted": 0, **json.loads(line)})
        total = sums.setdefault(one.target, Outcome(one.target, 0, 0, 0.0, 0))
        total.executions += one.executions
        total.accepted += one.accepted
        total.seconds += one.seconds
        total.exit_code = one.exit_code or total.exit_code
    return sums


def table(rows: list[Outcome]) -> str:
    lines = [f"   {'target':<24}{'executions':>14}{'accepted':>12}{'seconds':>10}{'a second':>10}"]
    executions, accepted = sum(r.executions for r in rows), sum(r.accepted for r in rows)
    for row in [*rows, Outcome("all", executions, accepted, sum(r.seconds for r in rows), 0)]:
        rate = row.executions / row.seconds if row.seconds else 0
        lines.append(
            f"   {row.target:<24}{row.executions:>14,}{row.accepted:>12,}{row.seconds:>10,.0f}{rate:>10,.0f}"
            f"{f'   found something, exit code {row.exit_code}' if row.exit_code else ''}"
        )
    return "\n".join(lines)


def fuzz(arguments: list[str]) -> int:
    seconds, runs = options(arguments)
    outcomes = []
    for program in build():
        with stage(program.name):
            outcomes.append(fuzz_one(program, seconds, runs))
    say(table(outcomes))
    say(f"\n   since this build folder was made ({RECORD.relative_to(ROOT)}):")
    say(table(sorted(totals().values(), key=lambda o: o.target)))
    found = [o.target for o in outcomes if o.exit_code]
    if found:
        say(f"\nfuzz: {', '.join(found)} found something: inputs in {(BUILD / 'found').relative_to(ROOT)}")
    return 1 if found else 0
