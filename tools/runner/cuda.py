"""Which CUDA compiler to use, and which GPU is here."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import cuda_toolchain
from runner.env import OFFLINE, PYTHON, pip_install
from runner.shell import Stop, capture, say

OLDEST = (12, 0)


def _choice() -> str:
    choice = os.environ.get("CRENEL_CUDA", "auto").lower()
    if choice not in ("auto", "off", "pypi"):
        raise Stop(f"CRENEL_CUDA={choice}: expected auto, off or pypi")
    return choice


def _release(nvcc: str) -> tuple[int, int]:
    match = re.search(r"release (\d+)\.(\d+)", capture([nvcc, "--version"]) or "")
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _system_nvcc() -> str | None:
    for candidate in (os.environ.get("CUDACXX"), "nvcc", "/usr/local/cuda/bin/nvcc"):
        found = shutil.which(candidate) if candidate else None
        if found is None:
            continue
        release = _release(found)
        if release >= OLDEST:
            return found
        if release == (0, 0):
            say(f"   {found} does not say its version: ignored")
            continue
        say(f"   {found} is older than CUDA {OLDEST[0]}.{OLDEST[1]}: ignored")
    return None


def _wheel_nvcc() -> str | None:
    site_packages = capture([PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
    try:
        return str(cuda_toolchain.make_toolkit(Path(site_packages)))
    except FileNotFoundError:
        return None


def find_nvcc(install: bool) -> str | None:
    """nvcc of the system, else of .venv; with `install` the pinned wheels are put there if need be."""
    choice = _choice()
    if choice == "off":
        return None
    if choice == "auto" and (found := _system_nvcc()):
        return found
    if not install:
        return _wheel_nvcc()
    if OFFLINE:
        raise Stop("no nvcc on PATH or in /usr/local/cuda, and CRENEL_OFFLINE=1 forbids installing one")
    pip_install("cuda")
    found = _wheel_nvcc()
    if found is None:
        raise Stop("the CUDA compiler packages were installed but make no toolkit (tools/cuda_toolchain.py)")
    return found


def absence() -> str:
    """Why find_nvcc() found none."""
    return "CRENEL_CUDA=off" if _choice() == "off" else "no nvcc on PATH or in /usr/local/cuda"


def gpus() -> list[dict[str, str]]:
    """Name, driver and compute capability of every GPU that nvidia-smi shows."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,compute_cap", "--format=csv,noheader"]
    rows = [[c.strip() for c in line.split(",")] for line in (capture(query) or "").splitlines()]
    return [dict(zip(("name", "driver", "capability"), row, strict=True)) for row in rows if len(row) == 3]


def cmake_defines(nvcc: str | None, cxx: str) -> dict[str, str]:
    """CMake variables for this choice."""
    if nvcc is None:
        return {"CRENEL_CUDA": "OFF"}
    defines = {
        "CRENEL_CUDA": "ON",
        "CMAKE_CUDA_COMPILER": nvcc,
        "CMAKE_CUDA_HOST_COMPILER": cxx,
        "CUDAToolkit_ROOT": str(Path(nvcc).resolve().parent.parent),
    }
    capabilities = sorted({gpu["capability"].replace(".", "") for gpu in gpus()})
    if capabilities:
        defines["CRENEL_CUDA_ARCHITECTURES"] = ";".join(capabilities)
    return defines
