"""The machine: .venv, pinned Python packages, Debian packages, a C++20 compiler."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
from pathlib import Path

from runner.shell import ROOT, Stop, capture, environment, files_below, run_logged, say, tree_hash

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
REQUIREMENTS = ROOT / "requirements"
OFFLINE = os.environ.get("CRENEL_OFFLINE", "") not in ("", "0")
WHEELS = ROOT / ".whl"

CXX_CANDIDATES = (
    ["g++", "c++", "clang++"]
    + [f"g++-{v}" for v in range(15, 10, -1)]
    + [f"clang++-{v}" for v in range(21, 13, -1)]
)
CXX_PROBE = """
#if defined(__clang__) ? __clang_major__ < 14 : __GNUC__ < 11
#error too old
#endif
#include <bit>
#include <concepts>
#include <span>
template <std::integral T> int f(std::span<T> s) { return static_cast<int>(s.size()); }
int main() { int a[std::bit_ceil(3u)]{}; return f(std::span<int>(a)) - 4; }
"""
LIST_INSTALLED = """
import importlib.metadata as m, re
print(*{re.sub("[-_.]+", "-", d.name).lower() for d in m.distributions() if d.name})
"""

_apt_updated = False


def apt_install(packages: list[str], why: str) -> None:
    """Installs Debian packages as root; otherwise stops with the line to type."""
    global _apt_updated
    names = " ".join(packages)
    line = f"apt-get install -y {names}"
    if shutil.which("apt-get") is None:
        raise Stop(f"{why}. Install with your system's package manager what Debian calls: {names}")
    if OFFLINE:
        raise Stop(f"{why}, and CRENEL_OFFLINE=1 forbids installing. Missing Debian packages: {names}")
    if os.geteuid() != 0:
        raise Stop(f"{why}. Type:\n    sudo {line}")
    say(f"   {why}: {line}")
    env = {"DEBIAN_FRONTEND": "noninteractive"}
    if not _apt_updated:
        run_logged(["apt-get", "update"], "apt-update", env=env, check=False)
        _apt_updated = True
    run_logged(line.split() + ["--no-install-recommends"], "apt-install", env=env)


def runnable(name: str) -> str | None:
    """Path of a program that starts: a version manager's stand-in of that name may not."""
    found = shutil.which(name)
    return found if found and capture([found, "--version"]) is not None else None


def programs(needed: dict[str, str], why: str) -> None:
    """needed: program -> Debian package that has it."""
    absent = [package for program, package in needed.items() if runnable(program) is None]
    if absent:
        apt_install(absent, f"{why}, and these are missing: {' '.join(absent)}")


def required(part: str) -> bool:
    """Does CRENEL_REQUIRE name this part, so that to leave it out is a failure?"""
    return part in os.environ.get("CRENEL_REQUIRE", "").split(",")


def _debian_python(suffix: str) -> str:
    """python3-venv for the system's own Python, python3.12-venv for another one."""
    if Path(sys.executable).resolve() == Path("/usr/bin/python3").resolve():
        return f"python3-{suffix}"
    return f"python{sys.version_info[0]}.{sys.version_info[1]}-{suffix}"


def ensure_venv() -> None:
    """.venv of this interpreter; made anew when it belongs to another one or was moved here."""
    probe = "import sys; print(sys.version_info[:3], sys.base_prefix, sys.prefix)"
    wanted = f"{sys.version_info[:3]} {sys.base_prefix} {VENV}"
    if PYTHON.exists() and capture([PYTHON, "-c", probe]) == wanted:
        return
    if VENV.is_symlink():  # what it leads to is somebody else's
        VENV.unlink()
    shutil.rmtree(VENV, ignore_errors=True)
    command = [sys.executable, "-m", "venv", VENV]
    if OFFLINE:
        command += ["--system-site-packages", "--without-pip"]
    elif importlib.util.find_spec("ensurepip") is None:
        apt_install([_debian_python("venv")], "Python's venv module is incomplete (no ensurepip)")
    say(f"   making .venv with Python {sys.version.split()[0]}")
    run_logged(command, "venv")
    if OFFLINE:  # the running Python may itself be a virtual environment: take its packages along
        folder = Path(capture([PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]))
        (folder / "crenel-offline.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    else:  # the pip of Debian 12 and Ubuntu 22.04 is too old to pass settings to a build
        pip(["install", "-c", REQUIREMENTS / "constraints.txt", "--upgrade", "pip"], "pip-itself")


def _required_names(group: str) -> list[str]:
    lines = (REQUIREMENTS / f"{group}.txt").read_text().splitlines()
    return [s for line in lines if (s := line.partition("#")[0].strip()) and not s.startswith("-")]


def pip_install(*groups: str) -> None:
    """Installs requirements/<group>.txt, unless that was done already."""
    ensure_venv()
    keys = {}
    for group in groups:
        names = [f"requirements/{group}.txt", "requirements/constraints.txt"]
        keys[group] = tree_hash(names, salt=str(OFFLINE))
    todo = [
        group for group in groups if not _stamp(group).exists() or _stamp(group).read_text() != keys[group]
    ]
    if OFFLINE:
        _install_offline(todo)
    for group in todo:
        if not OFFLINE:
            say(f"   installing Python packages: {' '.join(_required_names(group))}")
            pip(["install", "-r", REQUIREMENTS / f"{group}.txt"], f"pip-{group}")
        _stamp(group).write_text(keys[group])


def _stamp(group: str) -> Path:
    return VENV / f".installed-{group}"


def pip(arguments: list, log: str) -> None:
    run_logged([PYTHON, "-m", "pip", "--disable-pip-version-check", *arguments], log)


def _install_offline(groups: list[str]) -> None:
    """What is missing of all groups in one message, with the line that would fetch it elsewhere."""

    def missing() -> dict[str, list[str]]:
        present = set((capture([PYTHON, "-c", LIST_INSTALLED]) or "").split())
        every = {group: _required_names(group) for group in groups}
        return {
            group: absent
            for group, names in every.items()
            if (absent := [n for n in names if re.sub("[-_.]+", "-", n).lower() not in present])
        }

    lacking = missing()
    wheels = sorted(WHEELS.glob("*.whl"))
    if lacking and wheels:
        pip(["install", "--no-index", "--no-deps", "--no-compile", *wheels], "pip-offline")
        lacking = missing()
    if lacking:
        listed = "".join(f"\n    requirements/{group}.txt: {' '.join(n)}" for group, n in lacking.items())
        files = " ".join(f"-r requirements/{group}.txt" for group in lacking)
        raise Stop(
            f"CRENEL_OFFLINE=1 forbids installing, and these Python packages are missing:{listed}\n"
            f"Install them for this Python ({sys.executable}), or put their wheels into .whl/. On a machine\n"
            f"with network and Python {sys.version_info[0]}.{sys.version_info[1]} too, this fetches them:\n"
            f"    python3 -m pip download -d .whl {files}"
        )


def tool(name: str) -> str:
    """Path of an installed program: that of .venv first, then of the running Python, then PATH."""
    path = os.pathsep.join([str(VENV / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    found = shutil.which(name, path=path)
    if found is None:
        raise Stop(f"the program {name} was not found")
    return found


def tool_path() -> dict[str, str]:
    """PATH under which a build finds CMake and Ninja of .venv."""
    parts = [str(VENV / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    return {"PATH": os.pathsep.join(parts)}


def _compiles(cxx: str) -> bool:
    if shutil.which(cxx) is None:
        return False
    command = [cxx, "-std=c++20", "-fsyntax-only", "-x", "c++", "-"]
    done = subprocess.run(command, input=CXX_PROBE, text=True, capture_output=True, env=environment())
    return done.returncode == 0


def compiler() -> str:
    """A C++20 compiler (g++ >= 11 or clang >= 14), installed when it is missing and we are root."""
    wanted = os.environ.get("CXX")
    if wanted:
        if not _compiles(wanted):
            raise Stop(f"CXX={wanted} does not compile C++20; crenel needs g++ >= 11 or clang >= 14")
        return shutil.which(wanted)
    for attempt in range(2):
        for cxx in CXX_CANDIDATES:
            if _compiles(cxx):
                return shutil.which(cxx)
        if attempt == 0:
            apt_install(["g++"], "no C++20 compiler (g++ >= 11 or clang >= 14) was found")
    raise Stop("the installed g++ is older than 11; install g++ >= 11 or clang >= 14 and set CXX")


def python_headers() -> None:
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        apt_install([_debian_python("dev")], "the headers of Python (Python.h) were not found")


def find_header(name: str) -> bool:
    """Is the header where compilers and CMake look, or in CRENEL_GTEST_ROOT?"""
    roots = [Path("/usr"), Path("/usr/local"), *carried_prefixes()]
    roots += [Path(p) for p in os.environ.get("CMAKE_PREFIX_PATH", "").split(os.pathsep) if p]
    return any((root / "include" / name).exists() for root in roots)


def carried_prefixes() -> list[Path]:
    """Install prefixes inside CRENEL_GTEST_ROOT (a folder of unpacked packages)."""
    root = os.environ.get("CRENEL_GTEST_ROOT")
    if not root:
        return []
    base = Path(root).resolve()
    if not base.is_dir():
        raise Stop(f"CRENEL_GTEST_ROOT={root} is not a folder")
    return [p for p in (base / "usr", base) if (p / "include").is_dir()]


def googletest_sources() -> str | None:
    """CRENEL_GTEST_ROOT when it is GoogleTest's own source folder."""
    root = os.environ.get("CRENEL_GTEST_ROOT", "")
    return str(Path(root).resolve()) if root and (Path(root) / "CMakeLists.txt").exists() else None


def test_libraries() -> None:
    """GoogleTest, rapidcheck and valgrind; without rapidcheck an offline host leaves the property tests out,
    without valgrind the constant-time tests skip themselves."""
    needed = {} if googletest_sources() else {"gtest/gtest.h": "libgtest-dev"}
    if not OFFLINE:
        needed["rapidcheck.h"] = "librapidcheck-dev"
        needed["valgrind/memcheck.h"] = "valgrind"
    elif not find_header("rapidcheck.h"):
        say("   rapidcheck was not found: the C++ property tests are left out")
    headers(needed, "GoogleTest, rapidcheck or valgrind was not found")


def cxx_files(folder: str) -> list[Path]:
    return [f for f in files_below(ROOT / folder) if f.suffix in (".h", ".cpp", ".cu", ".cuh")]


def headers(needed: dict[str, str], why: str) -> None:
    """needed: header -> Debian package that has it."""
    absent = [package for header, package in needed.items() if not find_header(header)]
    if absent:
        apt_install(absent, why)


def jobs() -> int:
    """Parallel compilers: one a core, and 2 GiB of memory each."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 31
    except (ValueError, OSError):
        memory = cores
    return max(1, min(cores, memory))
