"""Running steps on the GPU machine: a share of the time each, a log each; and building the programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class Session:
    def __init__(self, out: Path, build: Path, seconds: float) -> None:
        self.out, self.build, self.end = out, build, time.monotonic() + seconds
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
    folders = [Path(os.environ["CUDA_HOME"]) / "bin"] if os.environ.get("CUDA_HOME") else []
    found = shutil.which(name)
    if found:
        return found
    folders += [Path("/usr/local/cuda/bin"), Path("/opt/nvidia/nsight-compute")]
    folders += sorted(Path("/opt/nvidia/nsight-compute").glob("*"), reverse=True)
    for site in dict.fromkeys((sysconfig.get_path("platlib"), sysconfig.get_path("purelib"))):
        folders += sorted(Path(site).glob("nvidia/*/bin"), reverse=True)
    return next((str(f / name) for f in folders if os.access(f / name, os.X_OK)), name)


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
        if name not in programs and s.run(
            f"build_{name}", [*nvcc, "-o", str(s.build / name), str(HERE / source)]
        ):
            programs[name] = s.build / name
    if "heldout" not in programs:
        library = s.build / "library"
        ninja = ["-G", "Ninja"] if shutil.which("ninja") else []
        configure = [
            "cmake",
            *ninja,
            "-S",
            str(ROOT),
            "-B",
            str(library),
            "-DCMAKE_BUILD_TYPE=Release",
            "-DCRENEL_CUDA=ON",
        ]
        jobs = str(os.cpu_count() or 4)
        cuda = Path(tool("nvcc")).resolve().parents[1]
        link = ["-L" + str(cuda / "lib64"), "-lcudart_static", "-fopenmp", "-ldl", "-lrt", "-lpthread"]
        if s.run("configure", configure) and s.run(
            "build_library", ["cmake", "--build", str(library), "--target", "crenel", "-j", jobs], 300
        ):
            compiler = ["g++", "-std=c++20", "-O2", "-Isrc", "-Iinclude", "-Ibench", f"-I{cuda}/include"]
            archive = str(library / "src" / "libcrenel.a")
            for name, source in (
                ("heldout", HERE / "heldout.cpp"),
                ("account_bench", ROOT / "bench/micro/account_bench.cpp"),
            ):
                command = [*compiler, str(source), archive, *link, "-o", str(s.build / name)]
                if s.run(f"build_{name}", command):
                    programs[name] = s.build / name
    return programs
