"""Commands of ./run. Python's standard library only: this runs before anything is installed."""

import sys

from runner import bench, demo, fhecore, quality, reproduce, suite, wheels
from runner.shell import Stop, say

USAGE = """usage: ./run COMMAND [arguments]

  demo [--device D] [...]      build, install into .venv, classify patients under encryption
  demo serve [...]             a service on this machine, and digits classified by it
  test [-k EXPR]               the whole suite; skips CUDA tests where there is no GPU
  test --quick                 a choice of it without CUDA, in minutes; says what it leaves out
  test --gpu                   its CUDA tests, where skipped ones fail; writes tests/gpu_receipt.json
  test --sanitize              CPU suite under ASan and UBSan
  test --sanitize=thread       the tests of several threads under TSan
  test --gpu --sanitize        C++ tests under compute-sanitizer memcheck and racecheck
  bench [SUITE] [...]          build and run the benchmarks; ./run bench --help
  reproduce [PAPER] [...]      tables and figures of four papers beside ours: out/reproduction/index.html
  lint --quick [--fix]         before every commit, a minute: formats, rules, generated files
  lint [--fix]                 that, mypy, pyright and clang-tidy of all sources
  wheel [--help]               source distribution and wheels into dist/, examined and tried
  docs [--serve] [--notebooks] build the documentation into site/; with what notebooks print
  fuzz [SECONDS] [--runs N]    libFuzzer targets (clang), so long and so often each
  fhecore-test [-k EXPR]       the hardware unit's tests, as in ./run test
  fhecore-full                 the long ones too: 100,000 tiles, formal proofs, netlist simulation
  fhecore-syn [...]            synthesis for ASAP7: area, frequency, critical path
  fhecore-sim [...]            the model of a GPU with the unit
  fhecore-report [...]         its tables and plots

environment
  CRENEL_OFFLINE=1     install nothing: use the Python packages already here, and wheels in .whl/
  CRENEL_CUDA          auto (default), off, pypi (use the compiler wheels even if a toolkit is here)
  CRENEL_GTEST_ROOT    folder with unpacked GoogleTest and rapidcheck packages
  CRENEL_PYTHON, CXX   interpreter and compiler to use"""

COMMANDS = {
    "demo": demo.main,
    "test": suite.main,
    "bench": bench.main,
    "reproduce": reproduce.main,
    "lint": quality.lint,
    "wheel": wheels.main,
    "docs": quality.docs,
    "fuzz": quality.fuzz,
    "fhecore-test": fhecore.test,
    "fhecore-full": fhecore.full,
    "fhecore-syn": fhecore.syn,
    "fhecore-sim": fhecore.sim,
    "fhecore-report": fhecore.report,
}


def main(argv: list[str]) -> int:
    if not argv or argv[0] in ("help", "-h", "--help"):
        say(USAGE)
        return 0 if argv else 2
    command = COMMANDS.get(argv[0])
    if command is None:
        say(f"./run: no command {argv[0]!r}\n\n{USAGE}")
        return 2
    try:
        return command(argv[1:])
    except Stop as stop:
        say(f"\n./run {argv[0]}: {stop}")
        return 1
    except KeyboardInterrupt:
        say("\ninterrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
