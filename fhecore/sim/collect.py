"""Everything that needs a GPU, in one session of at most eight minutes: one tar comes back.

usage: collect.py [--out DIR] [--build DIR] [--prebuilt DIR] [--seconds 480]

Needs nvcc, ncu, cuobjdump, cmake and a C++ compiler (builds are skipped for programs found in --prebuilt
that run). Steps: build, microbenchmarks (five launches each), check of the tensor-core kernels, profiles of
the held-out kernels, the unit's stubs and the whole operations, times of the operations. Each step has a
share of the time and its own log; a step that fails is reported and the others go on. Result:
DIR/fhecore-sim.tar.gz, for ingest.py. Clocks and other settings of the GPU are left alone (--clock-control
none).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # a script, not a package, on the GPU machine

from session import ROOT, Session, build_all, tool  # noqa: E402

LIMIT_BYTES = 16 << 20
METRICS = (
    ("smsp__inst_executed.sum",), ("sm__cycles_elapsed.max", "gpc__cycles_elapsed.max"),
    ("gpu__time_duration.sum",),
    ("sm__cycles_active.avg",), ("sm__cycles_active.max",),
    ("smsp__issue_active.avg.pct_of_peak_sustained_active",),
    ("sm__warps_active.avg.per_cycle_active",), ("smsp__cycles_elapsed.avg.per_second",),
    ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",),
    ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",),
    ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",), ("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",),
    ("lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors_op_read.sum"),
    ("lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum", "lts__t_sectors_op_read_lookup_hit.sum"),
    ("lts__t_sectors_srcunit_tex_op_write.sum", "lts__t_sectors_op_write.sum"),
    ("dram__bytes_read.sum", "dram__sectors_read.sum"), ("dram__bytes_write.sum", "dram__sectors_write.sum"),
)  # fmt: skip
# Counted by patched code; not listed by --query-metrics.
PATCHED = ("sass__inst_executed_per_opcode",)
KERNELS = (
    "regex:^(binary|scalar|tensor|base_convert|key_multiply|key_switch_rows|automorphism|row_|column_|columns|rows|"
    "key_rows|divide_rows|convert).*"
)


def known_metrics(s: Session) -> list[str]:
    """Of every group the first name that this ncu knows."""
    listing = s.out / "metrics.txt"
    s.run("query_metrics", [tool("ncu"), "--query-metrics"], 60, listing)
    text = listing.read_text(errors="replace") if listing.exists() else ""
    names = set(re.findall(r"^\s*([a-z0-9_]+__[a-z0-9_]+)", text, re.M))
    chosen = []
    for group in METRICS:
        found = [m for m in group if not names or m.split(".")[0] in names]
        if found:
            chosen.append(found[0])
        else:
            print(f"no counter {' or '.join(group)} here")
    listing.unlink(missing_ok=True)
    return chosen


def profile(s: Session, name: str, program: list[str], metrics: list[str], natural: bool) -> None:
    """One report and its export. `natural`: caches as the program leaves them, by running it again for every
    pass; otherwise every launch is repeated, and finds caches (of code and constants, too) as its last
    repetition left them."""
    report = s.build / f"{name}.ncu-rep"
    mode = "application" if natural else "kernel"
    caches = ["--replay-mode", mode, "--cache-control", "none"]
    common = [
        tool("ncu"),
        "--profile-from-start",
        "off",
        "--clock-control",
        "none",
        *caches,
        "-f",
        "-o",
        str(report),
    ]
    common += ["--kernel-name-base", "function", "--kernel-name", KERNELS, "--section", "SourceCounters"]
    common += ["--section", "LaunchStats"]
    for tries in ((*metrics, *PATCHED), tuple(metrics)):
        if s.run(f"profile_{name}", [*common, "--metrics", ",".join(tries), *program], 150):
            break
    target = s.out / f"{name}.profile.json.gz"
    # The report's Python module fits some interpreters only.
    for python in dict.fromkeys((sys.executable, "/usr/bin/python3", "/opt/torch/.venv/bin/python3")):
        export = [python, str(HERE / "ncu_export.py"), str(report), str(target)]
        if report.exists() and Path(python).exists() and s.run(f"export_{name}", export):
            s.files.append(target)
            return
    if target.exists():  # some launches lack counts: still worth having
        s.files.append(target)
    if report.exists():
        # Not readable here: the report itself, and the pages that the command line can print.
        shutil.copy(report, s.out / report.name)
        s.files.append(s.out / report.name)
        page = s.out / f"{name}.source.csv"
        s.run(f"source_{name}", [tool("ncu"), "--import", str(report), "--page", "source", "--csv"], 60, page)
        s.files.append(page)


def listing(s: Session, name: str, program: Path) -> None:
    """SASS and resources of the functions that a profile names (all where there is no profile)."""
    import gzip

    sass, usage = s.build / f"{name}.sass", s.out / f"{name}.usage.txt"
    s.run(f"sass_{name}", [tool("cuobjdump"), "-sass", str(program)], 90, sass)
    s.run(f"usage_{name}", [tool("cuobjdump"), "-res-usage", str(program)], 60, usage)
    wanted: set[str] = set()
    for path in s.files:
        if path.name.endswith(".profile.json.gz"):
            with gzip.open(path, "rt") as file:
                wanted |= {entry["function"] for entry in json.load(file)["launches"]}
    keep = True
    with gzip.open(s.out / f"{name}.sass.gz", "wt") as out:
        for line in sass.read_text(errors="replace").splitlines():
            if "Function :" in line:
                keep = name == "micro" or not wanted or line.split("Function :")[1].strip() in wanted
            if keep:
                out.write(line + "\n")
    s.files += [s.out / f"{name}.sass.gz", usage]


def facts() -> dict:
    def first(command: list[str]) -> str:
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip()
        except (OSError, subprocess.TimeoutExpired):
            return ""

    query = "name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,temperature.gpu"
    return {
        "gpu": first(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]),
        "nvcc": first([tool("nvcc"), "--version"]).splitlines()[-1:],
        "ncu": first([tool("ncu"), "--version"]).splitlines()[-1:],
        "host": platform.platform(),
        "version": (ROOT / "VERSION").read_text().strip(),
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=Path(os.environ.get("OUT", ROOT / "build/fhecore/collected"))
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build/fhecore/collect")
    parser.add_argument("--prebuilt", type=Path)
    parser.add_argument("--seconds", type=float, default=480)
    args = parser.parse_args(arguments)
    args.out.mkdir(parents=True, exist_ok=True)
    work = args.build / "results"
    work.mkdir(parents=True, exist_ok=True)
    s = Session(work, args.build, args.seconds)
    programs = build_all(s, args.prebuilt)
    if "micro" in programs:
        target = work / "micro.jsonl"
        s.run("micro", [str(programs["micro"])], 60, target)
        s.files.append(target)
    metrics = known_metrics(s)
    if "unit" in programs:
        target = work / "unit-check.json"
        s.run("unit_check", [str(programs["unit"]), "--check"], 60, target)
        s.run("unit_list", [str(programs["unit"]), "--list", str(work / "unit.cases.json")])
        s.files += [target, work / "unit.cases.json"]
    if "heldout" in programs:
        heldout = str(programs["heldout"])
        for part in ("kernels", "operations"):
            s.run(
                f"list_{part}",
                [heldout, "--device", "cuda:dry", "--list", str(work / f"{part}.cases.json"), "--set", part],
            )
            s.files.append(work / f"{part}.cases.json")
        s.run("times", [heldout, "--time", str(work / "times.json"), "--set", "all"], 60)
        s.files.append(work / "times.json")
        profile(s, "kernels", [heldout, "--profile", "--set", "kernels"], metrics, natural=False)
    if "unit" in programs:
        profile(s, "unit", [str(programs["unit"]), "--profile"], metrics, natural=False)
    if "heldout" in programs:
        profile(s, "operations", [heldout, "--profile", "--set", "operations"], metrics, natural=True)
    if "micro" in programs:
        profile_null(s, programs["micro"])
    for name in ("micro", "unit", "heldout"):
        if name in programs:
            listing(s, name, programs[name])
    if "account_bench" in programs:
        profile_bootstrap(s, programs["account_bench"])
    (work / "facts.json").write_text(json.dumps({"facts": facts(), "steps": s.steps}, indent=1))
    return pack(s, args.out)


def profile_null(s: Session, program: Path) -> None:
    """Cycles that the profiler counts for a kernel that does nothing."""
    target = s.out / "null.csv"
    command = [
        tool("ncu"),
        "--clock-control",
        "none",
        "--csv",
        "--print-units",
        "base",
        "--kernel-name",
        "regex:^nothing$",
    ]
    metrics = "sm__cycles_elapsed.max,gpc__cycles_elapsed.max,gpu__time_duration.sum"
    s.run("null_kernel", [*command, "--metrics", metrics, str(program), "--only", "alu_chain"], 60, target)
    s.files.append(target)


def profile_bootstrap(s: Session, program: Path) -> None:
    """Instructions and time of every launch of one bootstrapping; last, with whatever time is left."""
    import gzip

    account, table = s.build / "bootstrap.account.json", s.build / "bootstrap.csv"
    own = [
        str(program),
        "--device",
        "cuda",
        "--params",
        "boot40",
        "--operation",
        "bootstrap",
        "--json",
        str(account),
    ]
    if not s.run("account_bootstrap", own, 60):
        return
    facts_ = json.loads(account.read_text())
    window = ["--launch-skip", str(facts_["kernels_before"]), "--launch-count", str(facts_["kernels"])]
    names = "regex:^(binary|scalar|tensor|base_convert|convert_|key_multiply|key_switch_rows|"
    names += "automorphism|lift_|plain_|linear_|hoisted_|sample_|reduce_|row_|column_|small_).*"
    command = [
        tool("ncu"),
        "--clock-control",
        "none",
        "--cache-control",
        "none",
        "--csv",
        "--print-units",
        "base",
    ]
    command += ["--kernel-name-base", "function", "--kernel-name", names, *window]
    command += ["--metrics", "smsp__inst_executed.sum,gpu__time_duration.sum", *own]
    if s.run("profile_bootstrap", command, 150, table):
        with gzip.open(s.out / "bootstrap.csv.gz", "wt") as out:
            out.write(table.read_text(errors="replace"))
        shutil.copy(account, s.out / account.name)
        s.files += [s.out / "bootstrap.csv.gz", s.out / account.name]


def pack(s: Session, out: Path) -> int:
    tar = out / "fhecore-sim.tar.gz"
    logs = [p for p in s.out.glob("*.log") if p.stat().st_size < 200_000]
    with tarfile.open(tar, "w:gz") as archive:
        for path in [*s.files, s.out / "facts.json", *logs]:
            if path.exists():
                archive.add(path, arcname=path.name)
    failed = [step["step"] for step in s.steps if not step["ok"]]
    size = tar.stat().st_size
    print(
        f"{tar}: {size / 1e6:.1f} MB, {len(s.files)} files, {s.left():.0f} s left;"
        f" failed: {failed or 'nothing'}"
    )
    if size > LIMIT_BYTES:
        print(f"the tar is over {LIMIT_BYTES >> 20} MiB")
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
