"""Installs a build to a temporary prefix, builds the example project against it, and runs it."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def cached(build: Path, name: str) -> str:
    """A variable of the build's CMake cache, "" when absent."""
    for line in (build / "CMakeCache.txt").read_text().splitlines():
        key, _, value = line.partition("=")
        if key.partition(":")[0] == name:
            return value
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="build folder of Crenel")
    parser.add_argument("--cmake", default="cmake")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="crenel-find-package-") as folder:
        prefix, example = Path(folder) / "prefix", Path(folder) / "build"
        configure = [options.cmake, "-S", HERE, "-B", example, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"]
        if value := cached(options.build, "CMAKE_CXX_COMPILER"):
            configure.append(f"-DCMAKE_CXX_COMPILER={value}")
        # As for a user without a toolkit: what is installed is all that a program needs.
        configure.append("-DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON")
        steps = [
            [options.cmake, "--install", options.build, "--prefix", prefix, "--component", "devel"],
            configure,
            [options.cmake, "--build", example],
            [example / "example"],
        ]
        for step in steps:
            command = [str(part) for part in step]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                print(f"$ {' '.join(command)}\n{done.stdout}exit code {done.returncode}")
                return 1
        print(f"   {done.stdout.strip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
