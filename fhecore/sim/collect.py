"""Everything that needs a GPU, in one session of at most eight minutes: one tar comes back.

usage: collect.py [--out DIR] [--build DIR] [--prebuilt DIR] [--seconds 480] [--python PATH]
       collect.py --export REPORT.ncu-rep OUT.json.gz

Needs nvcc, ncu, cuobjdump, cmake and a C++ compiler (builds are skipped for programs found in --prebuilt
that run). Steps: build, microbenchmarks (five launches each), check of the tensor-core kernels, profiles of
the held-out kernels, the unit's stubs and the whole operations, times of the operations. Each step has a
share of the time and its own log; a step that fails is reported and the others go on. Result:
DIR/fhecore-sim.tar.gz, for ingest.py. Clocks and other settings of the GPU are left alone (--clock-control
none).

--export is one of these steps: a profiler report to a small JSON, by the module ncu_report of Nsight Compute
(its extras/python folder is searched for), which fits some interpreters only: this one, the system's and
--python are tried. Format: {"launches": [{"function": mangled, "grid", "block", "metrics": {name: value},
"opcodes": {opcode: count}, "by_pc": {name: [[offset, value], ...]}}]}. Offsets are bytes from the function's
start.
"""

from __future__ import annotations

import argparse
import datetime
import glob
import gzip
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
if not __package__:  # a script on the GPU machine: this folder has names of the standard library (trace)
    sys.path[0] = str(ROOT)

from fhecore.sim.sass import find_tool  # noqa: E402

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
# Counters by instruction: executed counts and what memory instructions move, under the names of any version.
BY_PC = re.compile(r"^(sass__|smsp__sass_)?(thread_)?inst_executed$|^memory_l[12]_")
EXECUTED = ("inst_executed", "sass__inst_executed", "smsp__sass_inst_executed")
KEEP = ("smsp__", "sm__", "gpc__", "gpu__", "l1tex__", "lts__", "dram__", "launch__", "sass__")
FOLDERS = (
    "/opt/nvidia/nsight-compute/*/extras/python", "/usr/local/cuda*/nsight-compute*/extras/python",
    "/usr/lib/nsight-compute*/extras/python", "/usr/local/NVIDIA-Nsight-Compute*/extras/python",
)  # fmt: skip


class Session:
    """Steps with a share of the time and a log each."""

    def __init__(self, out: Path, build: Path, seconds: float, python: str | None = None) -> None:
        self.out, self.build, self.end = out, build, time.monotonic() + seconds
        self.python = python  # another interpreter for --export
        self.steps: list[dict] = []
        self.files: list[Path] = []

    def left(self) -> float:
        return self.end - time.monotonic()

    def run(self, name: str, command: list[str], share: float = 120, stdout: Path | None = None) -> bool:
        """One command with at most `share` seconds; its output to a log."""
        begin, limit = time.monotonic(), min(share, self.left())
        log = self.out / f"{name}.log"
        if limit < 1:
            self.steps.append({"step": name, "ok": False, "why": "no time left", "seconds": 0})
            return False
        with log.open("w") as err, (stdout or Path(os.devnull)).open("w") as out_file:
            try:
                done = subprocess.run(
                    command, cwd=ROOT, timeout=limit, stderr=subprocess.STDOUT if stdout is None else err,
                    stdout=out_file if stdout else err,
                )  # fmt: skip
                code: int | str = done.returncode
            except subprocess.TimeoutExpired:
                code = f"stopped after {limit:.0f} s"
            except FileNotFoundError as error:
                code = str(error)
        ok = code == 0
        step = {"step": name, "ok": ok, "code": code, "seconds": round(time.monotonic() - begin, 1)}
        self.steps.append(step)
        print(f"{name:<22}{'ok' if ok else 'FAILED ' + str(code):<24}{step['seconds']:>7} s", flush=True)
        if not ok:
            print("   " + "\n   ".join(log.read_text(errors="replace").splitlines()[-6:]), flush=True)
        return ok


def tool(name: str) -> str:
    """Path of a CUDA tool, or its bare name where it is in none of the usual places."""
    return find_tool(name) or name


def ncu(*options: str) -> list[str]:
    """The profiler, which leaves the clocks alone."""
    return [tool("ncu"), "--clock-control", "none", *options]


def build_all(s: Session, prebuilt: Path | None) -> dict[str, Path]:
    """micro and unit by nvcc, heldout on the library. What --prebuilt has and runs here is taken as it is."""
    programs: dict[str, Path] = {}
    for name in ("micro", "unit", "heldout", "account_bench"):
        if prebuilt and (prebuilt / name).exists():
            probe = subprocess.run([str(prebuilt / name), "--help"], capture_output=True, timeout=60)
            if probe.returncode == 2:  # it runs here, and says how it wants to be called
                programs[name] = prebuilt / name
    s.build.mkdir(parents=True, exist_ok=True)
    nvcc = [tool("nvcc"), "-std=c++20", "-arch=sm_90", "-O3", f"-I{HERE}/kernels", f"-I{HERE}/micro"]
    for name, source in (("micro", "micro/micro.cu"), ("unit", "unit.cu")):
        command = [*nvcc, "-o", str(s.build / name), str(HERE / source)]
        if name not in programs and s.run(f"build_{name}", command):
            programs[name] = s.build / name
    if "heldout" not in programs:
        library = s.build / "library"
        ninja = ["-G", "Ninja"] if shutil.which("ninja") else []
        configure = ["cmake", *ninja, "-S", str(ROOT), "-B", str(library)]
        configure += ["-DCMAKE_BUILD_TYPE=Release", "-DCRENEL_CUDA=ON"]
        jobs = str(os.cpu_count() or 4)
        cuda = Path(tool("nvcc")).resolve().parents[1]
        link = ["-L" + str(cuda / "lib64"), "-lcudart_static", "-fopenmp", "-ldl", "-lrt", "-lpthread"]
        build = ["cmake", "--build", str(library), "--target", "crenel", "-j", jobs]
        if s.run("configure", configure) and s.run("build_library", build, 300):
            compiler = ["g++", "-std=c++20", "-O2", "-Isrc", "-Iinclude", "-Ibench", f"-I{cuda}/include"]
            archive = str(library / "src" / "libcrenel.a")
            harness = [ROOT / "bench/harness" / name for name in ("arguments.cpp", "program.cpp")]
            for name, sources in (
                ("heldout", [HERE / "heldout.cpp"]),
                ("account_bench", [ROOT / "bench/micro/account_bench.cpp", *harness]),
            ):
                command = [*compiler, *map(str, sources), archive, *link, "-o", str(s.build / name)]
                if s.run(f"build_{name}", command):
                    programs[name] = s.build / name
    return programs


# ---- profiles
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
    common = ncu("--profile-from-start", "off", "--cache-control", "none", "-f", "-o", str(report))
    common += ["--replay-mode", "application" if natural else "kernel"]
    common += ["--kernel-name-base", "function", "--kernel-name", KERNELS]
    common += ["--section", "SourceCounters", "--section", "LaunchStats"]
    for tries in ((*metrics, *PATCHED), tuple(metrics)):
        if s.run(f"profile_{name}", [*common, "--metrics", ",".join(tries), *program], 150):
            break
    target = s.out / f"{name}.profile.json.gz"
    for python in dict.fromkeys((sys.executable, "/usr/bin/python3", s.python)):
        command = [python, str(HERE / "collect.py"), "--export", str(report), str(target)]
        if report.exists() and python and Path(python).exists() and s.run(f"export_{name}", command):
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


# ---- export of a report, in whichever interpreter has the module
class ExportError(RuntimeError):
    """The report cannot be read, or has no launch; the message says why."""


def module():
    """ncu_report. ExportError when it is not installed."""
    for pattern in FOLDERS:
        for folder in sorted(glob.glob(pattern), reverse=True):
            sys.path.append(folder)
    try:
        import ncu_report
    except ImportError as error:
        raise ExportError(f"ncu_report is not importable ({error}); searched {', '.join(FOLDERS)}") from error
    return ncu_report


def instances(metric, text: bool) -> list[tuple[object, float]]:
    """(correlation id, value) of every instance; empty where there are none. Ids are addresses, or opcodes
    (`text`)."""
    count = metric.num_instances()
    if not count or not metric.has_correlation_ids():
        return []
    ids = metric.correlation_ids()
    read = ids.as_string if text else ids.as_uint64
    return [(read(k), metric.as_double(k)) for k in range(count)]


def launch(action, report) -> dict:
    base = getattr(getattr(report, "IAction", None), "NameBase_MANGLED", 2)
    entry: dict = {"function": action.name(base), "metrics": {}, "opcodes": {}, "by_pc": {}}
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        if BY_PC.match(name):
            found = instances(metric, text=False)
            if found:
                entry["by_pc"]["inst_executed" if name in EXECUTED else name] = found
        elif name == "sass__inst_executed_per_opcode":
            entry["opcodes"] |= dict(instances(metric, text=True))
        elif name.startswith(KEEP):
            try:
                entry["metrics"][name] = metric.as_double()
            except Exception:
                continue
    addresses = [k for k, _ in entry["by_pc"].get("inst_executed", [])]
    if addresses:
        start = min(addresses)  # a function's first instruction is always executed
        entry["by_pc"] = {n: [[int(k - start), v] for k, v in rows] for n, rows in entry["by_pc"].items()}
    for axis in ("grid", "block"):
        sizes = [entry["metrics"].get(f"launch__{axis}_dim_{d}") for d in "xyz"]
        entry[axis] = [int(s) for s in sizes] if all(s is not None for s in sizes) else None
    return entry


def export(path: Path) -> dict:
    report = module()
    context = report.load_report(str(path))
    launches = []
    for r in range(context.num_ranges()):
        actions = context.range_by_idx(r)
        launches += [launch(actions.action_by_idx(a), report) for a in range(actions.num_actions())]
    if not launches:
        raise ExportError(f"{path}: no launch was profiled")
    return {"kind": "fhecore-profile", "launches": launches}


def write_export(report: Path, target: Path) -> int:
    """Exit status: 0 where every launch has counts by instruction."""
    try:
        data = export(report)
    except ExportError as error:
        print(error, file=sys.stderr)
        return 1
    with gzip.open(target, "wt") as out:
        json.dump(data, out)
    counted = sum(bool(entry["by_pc"].get("inst_executed")) for entry in data["launches"])
    print(f"{len(data['launches'])} launches, {counted} with counts by instruction")
    return 0 if counted == len(data["launches"]) else 1


# ---- the other steps
def listing(s: Session, name: str, program: Path) -> None:
    """SASS and resources of the functions that a profile names (all where there is no profile)."""
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
        "commit": os.environ.get("CRENEL_COMMIT") or first(["git", "-C", str(ROOT), "rev-parse", "HEAD"]),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }


def profile_null(s: Session, program: Path) -> None:
    """Cycles that the profiler counts for a kernel that does nothing."""
    target = s.out / "null.csv"
    command = ncu("--csv", "--print-units", "base", "--kernel-name", "regex:^nothing$")
    metrics = "sm__cycles_elapsed.max,gpc__cycles_elapsed.max,gpu__time_duration.sum"
    s.run("null_kernel", [*command, "--metrics", metrics, str(program), "--only", "alu_chain"], 60, target)
    s.files.append(target)


def profile_bootstrap(s: Session, program: Path) -> None:
    """Instructions and time of every launch of one bootstrapping; last, with whatever time is left."""
    account, table = s.build / "bootstrap.account.json", s.build / "bootstrap.csv"
    again = s.build / "bootstrap.again.json"  # a file that is there is refused
    for path in (account, again):
        path.unlink(missing_ok=True)
    own = [str(program), "--device", "cuda", "--params", "boot40", "--operation", "bootstrap", "--json"]
    if not s.run("account_bootstrap", [*own, str(account)], 60):
        return
    counted = json.loads(account.read_text())
    window = ["--launch-skip", str(counted["kernels_before"]), "--launch-count", str(counted["kernels"])]
    names = "regex:^(binary|scalar|tensor|base_convert|convert_|key_multiply|key_switch_rows|"
    names += "automorphism|lift_|plain_|linear_|hoisted_|sample_|reduce_|row_|column_|small_).*"
    command = ncu("--cache-control", "none", "--csv", "--print-units", "base")
    command += ["--kernel-name-base", "function", "--kernel-name", names, *window]
    command += ["--metrics", "smsp__inst_executed.sum,gpu__time_duration.sum", *own, str(again)]
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
    rest = f"{s.left():.0f} s left; failed: {failed or 'nothing'}"
    print(f"{tar}: {size / 1e6:.1f} MB, {len(s.files)} files, {rest}")
    if size > LIMIT_BYTES:
        print(f"the tar is over {LIMIT_BYTES >> 20} MiB")
        return 1
    return 1 if failed else 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    out = Path(os.environ.get("OUT", ROOT / "build/fhecore/collected"))
    parser.add_argument("--out", type=Path, default=out)
    parser.add_argument("--build", type=Path, default=ROOT / "build/fhecore/collect")
    parser.add_argument("--prebuilt", type=Path)
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--python", help="another interpreter for --export")
    parser.add_argument("--export", nargs=2, type=Path, metavar=("REPORT", "OUT"))
    args = parser.parse_args(arguments)
    if args.export:
        return write_export(*args.export)
    args.out.mkdir(parents=True, exist_ok=True)
    work = args.build / "results"
    work.mkdir(parents=True, exist_ok=True)
    s = Session(work, args.build, args.seconds, args.python)
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
            cases = work / f"{part}.cases.json"
            s.run(f"list_{part}", [heldout, "--device", "cuda:dry", "--list", str(cases), "--set", part])
            s.files.append(cases)
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
