"""Crenel and OpenFHE's PyPI wheel on one CPU, in one run, at about equal log PQ.

    python bench/compare/openfhe.py --build build/main [--threads 2] [--out bench/results/openfhe-cpu.json]

The wheel needs Python 3.10: --python names one, otherwise each python3.10 and python3 on PATH is tried, as a
version manager's stand-in is there and may not run; a virtual environment with the pinned wheel is made in
build/openfhe. Products include relinearisation and rescale on both sides;
the ring degree, the scale (2^40) and the security level (128 bits) agree, and so does log Q up to a prime.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WHEEL = "openfhe==1.6.1.0.22.4"
NEEDED = "import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 10) and f'Python {sys.version}')"
# OpenFHE: depth and digits whose log PQ comes nearest to Crenel's set within the 128-bit bound.
CASES = [
    {"log_n": 15, "params": "leveled-n15-s40", "depth": 15, "digits": 4},
    {"log_n": 16, "params": "leveled-n16-s40", "depth": 34, "digits": 5},
]


def of_threads(threads: int) -> dict[str, str]:
    """The environment of a timed process: its threads, and nothing else that tells OpenMP what to do.

    A shell that has threads sleep while they wait (OMP_WAIT_POLICY) makes OpenFHE's bootstraps half as slow
    again, and Crenel's hardly slower.
    """
    told = ("OMP_", "GOMP_", "KMP_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(told)}
    return kept | {"OMP_NUM_THREADS": str(threads)}


def refusal(python: str | Path, code: str) -> str:
    """Why this interpreter does not run `code`; empty when it does."""
    try:
        done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return f"exit code {done.returncode}{': ' + said[-1].strip() if said else ''}"


def base_python(wanted: str | None) -> Path:
    """A Python 3.10 that runs and can make virtual environments. SystemExit names what was tried."""
    if wanted:
        candidates = [shutil.which(wanted) or wanted]
    else:
        folders = [Path(p) for p in os.environ.get("PATH", "").split(os.pathsep) if p]
        names = [folder / name for name in ("python3.10", "python3") for folder in folders]
        candidates = [str(n) for n in dict.fromkeys(names) if n.is_file() and os.access(n, os.X_OK)]
    tried = []
    for candidate in candidates:
        reason = refusal(candidate, NEEDED)
        if not reason:
            return Path(candidate)
        tried.append(f"    {shlex.quote(str(candidate))}: {reason}")
    what = "Tried:\n" + "\n".join(tried) if tried else "There is no python3.10 and no python3 on PATH."
    sys.exit(f"{WHEEL} needs a Python 3.10 with its venv module; name one with --python PATH. {what}")


def openfhe_python(wanted: str | None) -> Path:
    """An interpreter that can import openfhe."""
    given = Path(wanted or sys.executable)
    if not refusal(given, "import openfhe"):
        return given
    folder = ROOT / "build" / "openfhe"
    python = folder / "bin" / "python"
    if refusal(python, NEEDED):  # absent, or of an interpreter that is gone
        base = base_python(wanted)
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([base, "-m", "venv", folder], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", WHEEL], check=True)
    return python


def run_crenel(program: Path, params: str, threads: int, quick: bool) -> dict:
    """Rows of the highest level, by operation name."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "crenel.json"
        command = [program, "--device", "cpu", "--params", params, "--limbs", "128", "--json", out]
        environment = of_threads(threads)
        command += ["--graph", "off"] + (["--quick"] if quick else [])
        rows = {}
        for name in ("hmult", "hrot", "rescale", "hadd"):
            subprocess.run([*command, "--only", name], check=True, env=environment, stdout=subprocess.DEVNULL)
            data = json.loads(out.read_text())
            out.unlink()  # results are never overwritten
            rows.update({row["name"]: row for row in data["results"]})
        return {"provenance": data["provenance"], "rows": rows}


def run_openfhe(python: Path, case: dict, technique: str, threads: int, quick: bool) -> dict:
    request = json.dumps({**case, "technique": technique, "quick": quick})
    environment = of_threads(threads)
    # -I: this folder is not on the path, where openfhe.py would hide the package.
    worker = Path(__file__).with_name("openfhe_worker.py")
    command = [python, "-I", worker, request]
    done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def compare(case: dict, program: Path, python: Path, threads: int, quick: bool) -> dict:
    """Crenel before and after OpenFHE, so that a change of the machine's speed shows."""
    before = run_crenel(program, case["params"], threads, quick)
    theirs = {t: run_openfhe(python, case, t, threads, quick) for t in ("FIXEDMANUAL", "FLEXIBLEAUTO")}
    after = run_crenel(program, case["params"], threads, quick)
    ours = {}
    for name, row in before["rows"].items():
        other = after["rows"][name]
        ours[name] = {
            "us": statistics.mean([row["latency_us"], other["latency_us"]]),
            "runs_us": [row["latency_us"], other["latency_us"]],
            "least_us": min(row["min_us"], other["min_us"]),
            "error_log2": row["error_log2"],
        }
    first = before["rows"]["hmult_rescale"]
    return {
        "log_n": case["log_n"],
        "crenel": {
            "params": case["params"],
            "log_pq": first["log_pq"],
            "limbs": first["limbs"],
            "alpha": first["alpha"],
            "depth": first["level"],
            "operations": ours,
            "provenance": before["provenance"],
        },
        "openfhe": theirs,
        "ratio_of_medians": ratios(ours, theirs, "us"),
        "ratio_of_least": ratios(ours, theirs, "least_us"),
    }


def steady(result: dict) -> bool:
    """Nobody else used the machine: Crenel's two runs agree, OpenFHE's quartiles are close."""
    pairs = [op["runs_us"] for name, op in result["crenel"]["operations"].items() if name.startswith("hmult")]
    spreads = [(t["q3_us"] - t["q1_us"]) / t["us"] for t in multiplications(result)]
    return all(max(p) < 1.15 * min(p) for p in pairs) and all(s < 0.15 for s in spreads)


def multiplications(result: dict) -> list[dict]:
    return [technique["multiply_rescale"] for technique in result["openfhe"].values()]


def ratios(ours: dict, theirs: dict, key: str) -> dict[str, float]:
    """OpenFHE's time over Crenel's."""
    manual, auto = theirs["FIXEDMANUAL"], theirs["FLEXIBLEAUTO"]
    product = min(ours["hmult_rescale"][key], ours["hmult_then_rescale"][key])
    return {
        "multiply_rescale, FIXEDMANUAL": manual["multiply_rescale"][key] / product,
        "multiply_rescale, FLEXIBLEAUTO": auto["multiply_rescale"][key] / product,
        "rotate": manual["rotate"][key] / ours["hrot"][key],
        "add": manual["add"][key] / ours["hadd"][key],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "main")
    parser.add_argument("--python", help="a Python 3.10, or one that has openfhe")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--log-n", type=int, choices=[15, 16], help="one of the two sizes only")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument(
        "--attempts", type=int, default=3, help="how often a disturbed measurement is repeated"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "openfhe-cpu.json")
    args = parser.parse_args()
    program = args.build / "bench" / "crenel_bench_ckks"
    if not program.exists():
        sys.exit(f"{program} is missing: ./run bench builds it")
    python = openfhe_python(args.python)
    cases = [case for case in CASES if args.log_n in (None, case["log_n"])]
    results = []
    for case in cases:
        for attempt in range(1, args.attempts + 1):
            result = compare(case, program, python, args.threads, args.quick)
            result |= {"steady": steady(result), "attempt": attempt, "load_average": list(os.getloadavg())}
            if result["steady"]:
                break
        results.append(result)
        disturbed = "" if result["steady"] else ", disturbed by other work"
        print(f"N = 2^{case['log_n']}, {args.threads} threads{disturbed}")
        for name, ratio in result["ratio_of_medians"].items():
            print(f"  {name}: {ratio:.2f} (of the least times: {result['ratio_of_least'][name]:.2f})")
    content = {
        "kind": "crenel-comparison",
        "format": 1,
        "threads": args.threads,
        "wheel": WHEEL,
        "cases": results,
    }
    args.out.write_text(json.dumps(content, indent=2) + "\n")
    print(args.out.relative_to(ROOT) if args.out.is_relative_to(ROOT) else args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
