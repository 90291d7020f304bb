"""What ./run test --quick builds and runs, and what it leaves out."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from runner import env, package
from runner.shell import ROOT, run_logged

BUILD = ROOT / "build" / "quick"
TARGETS = ("unit_tests", "conformance_tests", "_crenel", "_crenel_stub")
PROGRAMS = "^(unit|conformance)_tests$"
SETTINGS = {
    **package.TESTS,
    "CRENEL_BUILD_PYTHON": "ON",
    "CRENEL_UNITY": "ON",
    "CRENEL_COLD_OPTIONS": "-O0",  # compiled in two thirds of the time; what computes is optimised as ever
}
# Of the conformance tests those that take longest.
LONG_SUITES = ("*TorusIsa*", "*TorusGroupsIsa*", "TorusSchoolbook*", "TorusError*", "*HoistedSums*")
CXX_ENVIRONMENT = {"GTEST_FILTER": "-" + ":".join(LONG_SUITES), "CRENEL_DEVICES": "cpu"}
PYTHON_TESTS = [
    f"python/tests/test_{name}.py"
    for name in (
        "readme",
        "reference",
        "import",
        "rules",
        "errors",
        "params",
        "client",
        "evaluator",
        "operand",
        "serialize",
        "tfhe_arrays",
        "reproduce",
    )
]
LEFT_OUT = f"""left out by --quick (./run test runs them):
   CUDA: compiler and tests
   C++: unit_long_tests (circuits, integers, functions of TFHE, key files); host_kernel_tests (kernels of
        CUDA run on the host); {", ".join(LONG_SUITES)};
        golden, noise, property and integration tests; examples; find_package; the device ref, but where cpu
        is compared with it
   Python: all but {len(PYTHON_TESTS)} files (programs of the guides among them), and the device ref
   FHECore; sanitizers, fuzzers, clang-tidy; mypy, pyright"""


def stage_package() -> Path:
    """The Python package of this build in a folder of its own: what .venv has installed stays."""
    site = BUILD / "site"
    shutil.rmtree(site, ignore_errors=True)
    command = [env.tool("cmake"), "--install", BUILD, "--component", "python", "--prefix", site]
    run_logged(command, "quick-install", env=env.tool_path())
    shutil.copytree(ROOT / "python" / "crenel", site / "crenel", dirs_exist_ok=True)
    return site


def python_environment(site: Path) -> dict[str, str]:
    """Python tests on this package, on the processor."""
    paths = [str(site), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(p for p in paths if p), "CRENEL_DEVICES": "cpu"}
