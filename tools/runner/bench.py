"""./run bench: the benchmark programs of bench/."""

from __future__ import annotations

from runner import package
from runner.shell import ROOT, Stop, run, say, stage

# Name -> program below build/main/bench.
SUITES = {
    "ckks": "crenel_bench_ckks",
    "boot": "crenel_bench_boot",
    "tfhe": "crenel_bench_tfhe",
    "tfhe-tune": "micro/torus_tune",
    "kernels": "micro/kernels_bench",
    "account": "micro/account_bench",
}
WHOLE = ("ckks", "boot", "tfhe")
COMMON = ("--device", "--quick")
USAGE = f"""usage: ./run bench [SUITE] [arguments]

  SUITE            {", ".join(SUITES)}; none: {", ".join(WHOLE)}, one after the other
  --json FILE      a new file for the results, which are those of one suite
  arguments        ./run bench SUITE --help lists them; without SUITE: {", ".join(COMMON)}"""


def chosen(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Suites to run, and what each of them is given."""
    if arguments and not arguments[0].startswith("-"):
        if arguments[0] not in SUITES:
            raise Stop(f"no suite {arguments[0]!r}, expected one of {', '.join(SUITES)}")
        return arguments[:1], arguments[1:]
    if "--json" in arguments:
        raise Stop(
            "--json: a file holds the results of one suite, and no suite was named. Type:\n    "
            + "\n    ".join(f"./run bench {name} --json {name}.json" for name in WHOLE)
        )
    for word in arguments:
        if word.startswith("-") and word not in COMMON:
            raise Stop(f"{word}: only {', '.join(COMMON)} are understood by every suite; name one")
    return list(WHOLE), arguments


def main(arguments: list[str]) -> int:
    if arguments[:1] in (["-h"], ["--help"]):
        say(USAGE)
        return 0
    suites, rest = chosen(arguments)
    with stage("set up"):
        toolchain = package.prepare(install_cuda=False)
    with stage("build"):
        package.build(toolchain, package.BUILD, {"CRENEL_BUILD_BENCH": "ON"}, "bench")
    codes = []
    for name in suites:
        program = package.BUILD / "bench" / SUITES[name]
        if not program.is_file():
            raise Stop(f"the build made no {program.relative_to(ROOT)}")
        say(f"== {name}")
        codes.append(run([program, *rest], check=False))
    return max(codes)
