"""./run test: everything, or a quick choice of it; one count at the end."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from runner import cuda, env, fhecore, package, pytests, quality, quick, receipt
from runner.counts import Counts, from_ctest
from runner.shell import ROOT, Stop, capture, run, run_logged, say, stage, stage_times, together

CTEST_TIMEOUT = 900
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
    return _close(options, total, problem)


def _close(options, total: Counts, problem: str) -> int:
    if options.gpu and total.cuda_skipped:
        total.failed += total.cuda_skipped
        total.skipped -= total.cuda_skipped
        total.failures.append(f"{total.cuda_skipped} CUDA tests were skipped although --gpu was asked for")
    say("\n== times")
    for name, seconds in stage_times:
        say(f"   {seconds:8.1f} s  {name}")
    if total.cuda_skipped:
        say(f"   {total.cuda_skipped} CUDA tests skipped; on a GPU host ./run test --gpu runs them")
    whole = not options.k and not options.sanitize and not options.quick
    if options.gpu and whole and not total.failed:
        say(f"   receipt written: {receipt.write(total)}")
    elif whole and (stale := receipt.staleness()):
        say("\n" + "!" * 78)
        say(f"!! {stale}")
        say("!! On a GPU host run ./run test --gpu and commit tests/gpu_receipt.json.")
        say("!" * 78)
    for name in total.failures[:50]:
        say(f"FAILED {name}")
    if problem:
        say(f"\n{problem}\n")
    if total.passed + total.failed == 0:
        say("no test ran")
        total.failed += 1
    say(total.line())
    return 1 if total.failed else 0


def _prepare(cuda_too: bool = True) -> package.Toolchain:
    with stage("tools"):
        env.pip_install("build", "demo", "test")
        fhecore.install_tools()
        env.test_libraries()
        return package.prepare(install_cuda=cuda_too)


def _everything(options, total: Counts) -> None:
    toolchain = _prepare()
    with stage("build and install the package"):
        package.install(toolchain)
    extra = {"CRENEL_REQUIRE": "cuda"} if options.gpu else {}
    cxx, rest = Counts(), Counts()

    def cxx_lane() -> None:
        with stage("build the C++ tests"):
            package.build(toolchain, package.BUILD, {"CRENEL_BUILD_TESTS": "ON"}, "tests")
        with stage("C++ tests"):
            _ctest(package.BUILD, options.k, extra, cxx)

    def rest_lane() -> None:
        with stage("FHECore"):
            fhecore.run_tests(options.k, long=False, nvcc=toolchain.nvcc, total=rest)
        with stage("Python tests"):
            _pytest(options.k, extra, rest)

    try:
        together(cxx_lane, rest_lane)  # FHECore's tools use one core
    finally:
        total.merge(cxx)
        total.merge(rest)
    if options.k:
        return
    _rules(total)
    with stage("find_package example"):
        arguments = ["--build", package.BUILD, "--cmake", env.tool("cmake")]
        _script("tests/integration/find_package/check.py", arguments, total, toolchain.environment())


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
    say(f"\n{quick.LEFT_OUT}")


def _rules(total: Counts) -> None:
    with stage("rules"):
        for script in quality.RULES.values():
            _script(script, [], total)


def _script(script: str, arguments: list, total: Counts, extra: dict | None = None) -> None:
    """One script, one test: passed when it exits 0."""
    code = run([sys.executable, "-B", script, *arguments], env=extra, check=False)
    total.add_one(script, passed=code == 0)


def _ctest(build: Path, expression: str, extra: dict[str, str], total: Counts, programs: str = "") -> None:
    """`programs`: a regular expression of ctest's names; else all, or those that hold `expression`."""
    report = build / "ctest.xml"
    report.unlink(missing_ok=True)
    command = [env.tool("ctest"), "--test-dir", build, "--output-junit", report, "-j", env.jobs()]
    command += ["--timeout", CTEST_TIMEOUT, "--output-on-failure", "--no-tests=ignore"]
    command += ["--test-output-size-passed", 1 << 24, "--test-output-size-failed", 1 << 24]
    extra = {"OMP_WAIT_POLICY": "passive", **extra}  # several test programs share the cores
    if programs:
        command += ["-R", programs]
    elif expression and any(expression in name for name, _ in _ctest_entries(build)):
        command += ["-R", expression]
    elif expression:
        extra["GTEST_FILTER"] = f"*{expression}*"
    code = run_logged(command, "ctest", env=extra, check=False)
    counts = from_ctest(report)
    if code and not counts.failed:
        counts.add_one("ctest itself (build/logs/ctest.log)", passed=False)
    pytests.tell("ctest", counts, "build/logs/ctest.log")
    total.merge(counts)


def _pytest(expression: str, extra: dict[str, str], total: Counts) -> None:
    pytests.run("pytest", ["python/tests", *(["-k", expression] if expression else [])], extra, total)


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
        package.build(toolchain, package.BUILD, {"CRENEL_BUILD_TESTS": "ON"}, "tests")
    sanitizer = env.tool("compute-sanitizer")
    entries = _ctest_entries(package.BUILD)
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


def _ctest_entries(build: Path) -> list[tuple[str, str]]:
    """Name and program of every test that ctest knows."""
    listing = capture([env.tool("ctest"), "--test-dir", build, "--show-only=json-v1"])
    if listing is None:
        raise Stop("ctest could not list the tests")
    return [
        (test["name"], test["command"][0]) for test in json.loads(listing)["tests"] if test.get("command")
    ]
