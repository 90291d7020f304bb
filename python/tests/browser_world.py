"""The WebAssembly module, node and a browser, for tests: built where their tools are, or a skip says why."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from needed import lacking

ROOT = Path(__file__).resolve().parents[2]
WEB, BUILD, HERE = ROOT / "web", ROOT / "build" / "web", Path(__file__).parent / "browser"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def missing(reason: str) -> None:
    """Skips with the reason, or fails where CRENEL_REQUIRE has `web`."""
    lacking("web", reason)


def tool(name: str, package: str) -> str:
    """A program, or a skip."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.is_file() else shutil.which(name)
    if found is None:
        missing(f"{name} is not installed (Debian's package {package})")
    assert found is not None
    return found


@contextmanager
def alone() -> Iterator[None]:
    """Other processes of the tests wait."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def _built() -> str:
    """What went wrong, or nothing."""
    environment = dict(os.environ)
    if ccache := shutil.which("ccache"):
        environment.update(EM_COMPILER_WRAPPER=ccache, CCACHE_BASEDIR=str(ROOT.parent))
    cmake = tool("cmake", "cmake")
    configure = [tool("emcmake", "emscripten"), cmake, "-S", str(WEB), "-B", str(BUILD), "-G", "Ninja"]
    configure.append(f"-DCMAKE_MAKE_PROGRAM={tool('ninja', 'ninja-build')}")
    with alone():
        for command in (configure, [cmake, "--build", str(BUILD)]):
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
            if done.returncode:
                return (done.stdout + done.stderr)[-3000:]
    return ""


def page() -> Path:
    """The folder of the page, module and scripts, built from the sources as they are."""
    for name, package in (("node", "nodejs"), ("emcmake", "emscripten"), ("ninja", "ninja-build")):
        tool(name, package)
    wrong = _built()
    assert not wrong, wrong
    return BUILD / "page"


def node(command: str, *arguments: object, threads: int = 0) -> dict:
    """What bits.mjs answers: of the module without threads, or of that with so many."""
    module = page() / ("crenel-threads.wasm" if threads else "crenel.wasm")
    call = [tool("node", "nodejs"), HERE / "bits.mjs", WEB, module, max(threads, 1), command, *arguments]
    done = subprocess.run([str(c) for c in call], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@cache
def _entropy(folder: Path) -> Path:
    library = folder / "entropy.so"
    command = [tool("cc", "gcc"), "-shared", "-fPIC", "-O1", "-o", library, HERE / "entropy.c", "-ldl"]
    subprocess.run([str(c) for c in command], check=True, capture_output=True, timeout=60)
    return library


def native(device: str, folder: Path, seed: int) -> None:
    """native.py, with the library's randomness chosen."""
    import crenel

    if not sys.platform.startswith("linux"):
        missing("the library's randomness is chosen by LD_PRELOAD, which is Linux'")
    path = os.pathsep.join([str(Path(crenel.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {
        **os.environ, "LD_PRELOAD": str(_entropy(folder)), "CRENEL_TEST_ENTROPY": str(seed),
        "PYTHONPATH": path,
    }  # fmt: skip
    command = [sys.executable, str(HERE / "native.py"), device, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


def chromium() -> str:
    """The browser's program, or a skip."""
    for name in CHROMIUM:
        if found := shutil.which(name):
            return found
    missing("no Chromium is installed (Debian's package chromium)")
    raise AssertionError
