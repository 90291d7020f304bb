"""Makes a CUDA toolkit that CMake accepts out of the pinned compiler packages of PyPI.

The wheels unpack to <site-packages>/nvidia/cu13/{bin,include,lib,nvvm}: all that nvcc needs, but with
`lib` where nvcc and CMake's toolkit finder look for `lib64`, and libcudart.so.13 without the plain
name that the finder insists on. Usage: cuda_toolchain.py SITE_PACKAGES
prints the path of a working nvcc.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

NEEDED = (
    "bin/nvcc",
    "bin/ptxas",
    "nvvm/bin/cicc",
    "include/cuda_runtime.h",
    "include/crt/host_defines.h",
    "include/cccl/cub/cub.cuh",
    "lib/libcudart_static.a",
    "lib/libcudadevrt.a",
)


def _link(link: Path, target: str) -> None:
    if not link.exists():
        link.symlink_to(target)


def make_toolkit(site_packages: Path) -> Path:
    """Completes the toolkit of that folder and returns its nvcc."""
    roots = sorted((site_packages / "nvidia").glob("cu[0-9]*"))
    if not roots:
        raise FileNotFoundError(f"no CUDA compiler packages in {site_packages}")
    root = roots[-1]
    missing = [name for name in NEEDED if not (root / name).exists()]
    if missing:
        raise FileNotFoundError(f"CUDA compiler packages in {root} lack {', '.join(missing)}")
    _link(root / "lib64", "lib")
    for library in (root / "lib").glob("libcudart.so.*"):
        _link(root / "lib" / "libcudart.so", library.name)
    for name in ("bin/nvcc", "bin/ptxas", "nvvm/bin/cicc"):
        program = root / name
        if not os.access(program, os.X_OK):
            program.chmod(program.stat().st_mode | 0o755)
    return root / "bin" / "nvcc"


if __name__ == "__main__":
    print(make_toolkit(Path(sys.argv[1])))
