"""Builds the library once, in build/main, and installs the Python package from there.

The tests and benchmark programs are configured on top in the same folder, so nothing compiles twice.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from runner import cuda, env
from runner.shell import ROOT, run_logged, say, tree_hash

BUILD = ROOT / "build" / "main"
# The library is optimised, the tests themselves compile in two thirds of the time; their common headers once,
# and several files at a time.
TESTS = {
    "CRENEL_BUILD_TESTS": "ON",
    "CRENEL_TEST_OPTIONS": "-O1",
    "CRENEL_PRECOMPILE_TESTS": "ON",
    "CRENEL_UNITY_TESTS": "ON",
}
STAMP = env.VENV / ".installed-crenel"
COMPILED = env.VENV / ".installed-crenel-compiled"  # the hash of what its extension was compiled from
PYTHON = "python/crenel"
SOURCES = [
    "CMakeLists.txt",
    "VERSION",
    "pyproject.toml",
    "cmake",
    "include",
    "src",
    "fhecore/model",
    "params",
    "bench/CMakeLists.txt",
    "bench/harness",
    "bench/boot",
    "bench/tfhe",
    "python/CMakeLists.txt",
    "python/src",
    PYTHON,
]


@dataclass
class Toolchain:
    cxx: str
    nvcc: str | None

    def defines(self) -> dict[str, str]:
        defines = {"CMAKE_CXX_COMPILER": self.cxx, **cuda.cmake_defines(self.nvcc, self.cxx)}
        if ccache := env.runnable("ccache"):
            defines["CMAKE_CXX_COMPILER_LAUNCHER"] = ccache
            if self.nvcc:
                defines["CMAKE_CUDA_COMPILER_LAUNCHER"] = ccache
        return defines

    def environment(self) -> dict[str, str]:
        ccache = {"CCACHE_SLOPPINESS": "pch_defines,time_macros"}  # it would not keep users of such headers
        parallel = {"CMAKE_BUILD_PARALLEL_LEVEL": str(env.jobs())}
        return {**env.tool_path(), **parallel, **ccache, "CXX": self.cxx}


def prepare(install_cuda: bool) -> Toolchain:
    """Python packages, compilers and headers that a build needs."""
    env.pip_install("build")
    cxx = env.compiler()
    env.python_headers()
    nvcc = cuda.find_nvcc(install=install_cuda)
    say(f"   C++: {cxx}; CUDA: {nvcc or f'left out ({cuda.absence()})'}")
    return Toolchain(cxx, nvcc)


def install(toolchain: Toolchain) -> None:
    """Builds and installs into .venv, unless sources and tools are those of the last time."""
    salt = json.dumps([sys.version, toolchain.defines()], sort_keys=True)
    key = tree_hash([*SOURCES, "requirements/constraints.txt"], salt)
    if STAMP.exists() and STAMP.read_text() == key:
        say("   unchanged since the last build")
        COMPILED.write_text(_compiled())
        return
    STAMP.unlink(missing_ok=True)
    COMPILED.unlink(missing_ok=True)
    if toolchain.nvcc:
        say("   compiling C++ and CUDA: minutes, the first time")
    settings = [f"-Cbuild-dir={BUILD.relative_to(ROOT)}"]
    options = {"CRENEL_BUILD_TESTS": "OFF", "CRENEL_BUILD_BENCH": "OFF", "CRENEL_UNITY": "ON"}
    defines = {**toolchain.defines(), **options}
    settings += [f"-Ccmake.define.{name}={value}" for name, value in defines.items()]
    command = [env.PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "-v"]
    command += ["--no-build-isolation", "--no-deps", *settings, "."]
    compiled = _compiled()
    run_logged(command, "package", env=toolchain.environment())
    STAMP.write_text(key)
    COMPILED.write_text(compiled)


def is_of_these_sources() -> bool:
    """Was the installed extension compiled from the sources that the tree has now?"""
    return COMPILED.exists() and COMPILED.read_text() == _compiled()


def _compiled() -> str:
    return tree_hash([source for source in SOURCES if source != PYTHON])


def configure(toolchain: Toolchain, folder: Path, options: dict[str, str], log: str) -> None:
    """Configures `folder` with these options, on top of what it has."""
    defines = {**toolchain.defines(), **options}
    if prefixes := env.carried_prefixes():
        defines["CMAKE_PREFIX_PATH"] = ";".join(map(str, prefixes))
    if sources := env.googletest_sources():
        defines["CRENEL_GTEST_ROOT"] = sources
    command = [env.tool("cmake"), "-S", ROOT, "-B", folder, "-G", "Ninja"]
    command += [f"-D{name}={value}" for name, value in defines.items()]
    run_logged(command, f"{log}-configure", env=toolchain.environment())


def build(
    toolchain: Toolchain, folder: Path, options: dict[str, str], log: str, targets: tuple[str, ...] = ()
) -> None:
    """Configures `folder` and builds targets, or everything."""
    configure(toolchain, folder, options, log)
    chosen = ["--target", *targets] if targets else []
    command = [env.tool("cmake"), "--build", folder, *chosen]
    run_logged(command, f"{log}-build", env=toolchain.environment())
