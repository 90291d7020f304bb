"""./run test: everything, or a quick choice of it; one count at the end."""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

from runner import (
    ctests,
    cuda,
    env,
    extras,
    fhecore,
    package,
    pytests,
    quality,
    quick,
    sanitized,
    shares,
    tidy,
    typed,
    verdict,
)
from runner.counts import Counts
from runner.ctests import run as _ctest
from runner.shell import ROOT, Stop, remember, run, run_logged, say, stage, together

Lane = Callable[[Counts], None]
TIDY_SECONDS = 60
SHARES = 4  # of the Python tests, on few cores
SANITIZER_ENV = {
    "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:check_initialization_order=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
    "OMP_NUM_THREADS": "2",
}
# Of --sanitize=: folder, sanitizers, devices, targets (all where none is named), programs of ctest.
SANITIZERS = {
    "address": ("asan", "address,undefined", "ref,cpu", (), ""),
    "thread": ("tsan", "thread", "cpu", ("thread_tests",), "^thread_tests$"),
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./run test", description="The whole test suite.")
    parser.add_argument("--gpu", action="store_true", help="skipped CUDA tests fail; writes the receipt")
    parser.add_argument(
        "--sanitize",
        nargs="?",
        const="address",
        choices=[*SANITIZERS],
        help="ASan+UBSan, or TSan for the tests of several threads; with --gpu compute-sanitizer",
    )
    parser.add_argument("--quick", action="store_true", help="a choice without CUDA, in minutes")
    parser.add_argument("-k", metavar="EXPR", default="", help="only tests whose name contains EXPR")
    options = parser.parse_args(arguments)
    if options.quick and (options.gpu or options.sanitize or options.k):
        parser.error("--quick goes with no other option")
    if options.gpu and options.sanitize == "thread":
        parser.error("--sanitize=thread watches the host's threads; it does not go with --gpu")
    total = Counts()
    problem = ""
    try:
        if options.gpu and not cuda.gpus():
            raise Stop("--gpu: nvidia-smi shows no GPU on this machine")
        if options.quick:
            _quick(total)
        elif options.sanitize:
            (_gpu_sanitize if options.gpu else _sanitize)(options, total)
        else:
            _everything(options, total)
    except Stop as stop:
        problem = str(stop)
        total.failed += 1
    whole = not (options.k or options.sanitize or options.quick)
    return verdict.close(total, problem, gpu=options.gpu, whole=whole)


def _prepare(cuda_too: bool = True) -> package.Toolchain:
    with stage("tools"):
        env.pip_install("build", "demo", "test")
        extras.install()
        fhecore.install_tools()
        env.test_libraries()
        return package.prepare(install_cuda=cuda_too)


def _everything(options, total: Counts) -> None:
    toolchain = _prepare()
    typed.install()
    with stage("build and install the package"):
        package.install(toolchain)
    # What a GPU is compared with takes part all the same; ref and the CPU alone need no GPU host.
    extra = {"CRENEL_REQUIRE": "cuda", "CRENEL_DEVICES": "cuda:0"} if options.gpu else {}

    def cxx_lane(own: Counts) -> None:
        with stage("build the C++ tests"):
            package.build(toolchain, package.BUILD, package.TESTS, "tests")
        with stage("C++ tests"):
            _ctest(package.BUILD, options.k, extra, own)

    def fhecore_lane(own: Counts) -> None:
        with stage("FHECore"):
            fhecore.run_tests(options.k, long=False, nvcc=toolchain.nvcc, total=own)

    extras.tell()
    first, *python = _python(options.k, extra)
    further = [] if options.k else _hardening(options)
    _lanes(total, [cxx_lane, fhecore_lane], [first, *further[:1], *python, *further[1:]])
    if options.k:
        return
    _rules(total)
    with stage("find_package example"):
        arguments = ["--build", package.BUILD, "--cmake", env.tool("cmake")]
        _script("tests/integration/find_package/check.py", arguments, total, toolchain.environment())


def _lanes(total: Counts, lanes: list[Lane], further: list[Lane]) -> None:
    """All lanes at once (FHECore's tools use one core). Whichever ends takes the next of `further`, so that
    cores do not wait; what a lane counted counts even where it stopped."""
    queue = deque(further)
    counts = [Counts() for _ in lanes]

    def follow(lane: Lane, own: Counts) -> None:
        while True:
            lane(own)
            try:
                lane = queue.popleft()
            except IndexError:
                return

    try:
        together(*(partial(follow, lane, own) for lane, own in zip(lanes, counts, strict=True)))
    finally:
        for own in counts:
            total.merge(own)


def _hardening(options) -> list[Lane]:
    """Bounded: what is left out is said each time."""
    if options.gpu:
        remember(
            "ref and cpu by themselves, sanitizers, fuzzers, clang-tidy and types: ./run test runs them, "
            "where no GPU is waited for"
        )
        return []

    def sanitizers(own: Counts) -> None:
        with stage("sanitizers and fuzzers, a part"):
            sanitized.run(own, SANITIZER_ENV)

    def tidied(own: Counts) -> None:
        with stage("clang-tidy of what changed"):
            tidy.count(own, TIDY_SECONDS)

    def types(own: Counts) -> None:
        with stage("types"):
            typed.count(own)

    return [sanitizers, types, tidied]  # the longest first


def _quick(total: Counts) -> None:
    with stage("tools"):
        env.pip_install("build", "demo", "test")
        env.test_libraries()
        toolchain = package.Toolchain(package.prepare(install_cuda=False).cxx, None)
    with stage("build without CUDA"):
        package.build(toolchain, quick.BUILD, quick.SETTINGS, "quick", quick.TARGETS)
        site = quick.stage_package()
    cxx, python = Counts(), Counts()

    def cxx_lane() -> None:
        with stage("C++ tests"):
            _ctest(quick.BUILD, "", quick.CXX_ENVIRONMENT, cxx, quick.PROGRAMS)

    def python_lane() -> None:
        with stage("Python tests"):
            pytests.run("quick-pytest", quick.PYTHON_TESTS, quick.python_environment(site), python)

    try:
        together(cxx_lane, python_lane)
    finally:
        total.merge(cxx)
        total.merge(python)
    _rules(total)
    _script(typed.SIGNATURES, ["--stub", site / "crenel" / "_crenel.pyi"], total)
    say(f"\n{quick.LEFT_OUT}")


def _rules(total: Counts) -> None:
    with stage("rules"):
        for script in quality.RULES.values():
            _script(script, [], total)


def _script(script: str, arguments: list, total: Counts, extra: dict | None = None) -> None:
    """One script, one test: passed when it exits 0."""
    code = run([sys.executable, "-B", script, *arguments], env=extra, check=False)
    total.add_one(script, passed=code == 0)


def _python(expression: str, extra: dict[str, str]) -> list[Lane]:
    """The Python tests: at once where pytest has processes of its own or few are asked for, else in shares,
    so that no core waits while another has the rest of them."""
    whole: list[list[str]] = [["python/tests", *(["-k", expression] if expression else [])]]
    parts = whole
    if not expression and not pytests.workers():
        skipped = [extras.FILES[name] for name in extras.missing() if name in extras.FILES]
        parts = shares.of_folder("python/tests", SHARES, skipped=skipped)

    def lane(number: int, arguments: list[str], own: Counts) -> None:
        part = f", {number} of {len(parts)}" if len(parts) > 1 else ""
        with stage(f"Python tests{part}"):
            pytests.run(f"pytest-{number}" if part else "pytest", arguments, extra, own)

    return [partial(lane, number, arguments) for number, arguments in enumerate(parts, 1)]


def _sanitize(options, total: Counts) -> None:
    toolchain = package.Toolchain(_prepare(cuda_too=False).cxx, None)
    folder, sanitizers, devices, targets, programs = SANITIZERS[options.sanitize]
    build = ROOT / "build" / folder
    settings = {
        "CMAKE_BUILD_TYPE": "RelWithDebInfo",
        "CRENEL_BUILD_TESTS": "ON",
        "CRENEL_SANITIZE": sanitizers,
    }
    with stage(f"build with {sanitizers} sanitizers"):
        package.build(toolchain, build, settings, folder, targets)
    extra = {**SANITIZER_ENV, "CRENEL_DEVICES": devices}
    if programs and options.k:
        extra["GTEST_FILTER"] = f"*{options.k}*"
    with stage(f"C++ tests under {sanitizers} sanitizers"):
        _ctest(build, options.k, extra, total, programs)


def _gpu_sanitize(options, total: Counts) -> None:
    """Every C++ test program under compute-sanitizer; races and bad accesses fail it."""
    toolchain = _prepare()
    with stage("build the C++ tests"):
        package.build(toolchain, package.BUILD, package.TESTS, "tests")
    sanitizer = env.tool("compute-sanitizer")
    entries = ctests.entries(package.BUILD)
    programs = [p for p in dict.fromkeys(p for _, p in entries) if Path(p).is_relative_to(package.BUILD)]
    extra = {"CRENEL_REQUIRE": "cuda", "CRENEL_DEVICES": "cuda:0"}
    if options.k:
        extra["GTEST_FILTER"] = f"*{options.k}*"
    for check in ("memcheck", "racecheck"):
        with stage(f"compute-sanitizer {check}"):
            for program in programs:
                command = [sanitizer, "--tool", check, "--error-exitcode", 97, program]
                name = f"{check} {Path(program).name}"
                code = run_logged(command, name.replace(" ", "-"), env=extra, check=False)
                total.add_one(name, passed=code == 0)
