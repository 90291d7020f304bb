"""Where wheels are tried: a fresh virtual environment, and a Debian with python3 and no compiler."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from release.build import WORK, Interpreter
from runner import env
from runner.shell import ROOT, Stop, run_logged, say

SMOKE = ROOT / "tools" / "release" / "smoke.py"
NEEDED = ("numpy", "typer", "rich", "scikit-learn", "matplotlib")  # of the package and its extra `demo`
COMPILERS = ("gcc", "g++", "cc", "c++", "clang", "make", "cmake", "ninja", "nvcc")


def wheelhouse(version: tuple[int, int], executable: str | None = None) -> Path:
    """Wheels of what the package needs, for that Python, fetched once: by itself, or by this one for it."""
    name = f"{version[0]}.{version[1]}"
    folder = WORK / f"wheelhouse-{name}"
    if not folder.exists():
        base = [executable or env.PYTHON, "-m", "pip", "--disable-pip-version-check", "download", "-q"]
        base += [] if executable else ["--python-version", name]
        base += ["--only-binary", ":all:", "-d", folder, "-c", env.REQUIREMENTS / "constraints.txt"]
        run_logged([*base, "pip", *NEEDED], f"wheelhouse-{name}")
    return folder


def answer(command: list, what: str, environment: dict[str, str]) -> dict:
    """The JSON that the program prints; Stop with its words when it fails."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=environment, cwd="/")
    if done.returncode:
        raise Stop(f"{what}: {(done.stdout + done.stderr)[-3000:]}")
    found = json.loads(done.stdout[done.stdout.index("{") :])
    say("   " + ", ".join(f"{k}: {v}" for k, v in found.items() if k not in ("seconds", "refusal")))
    return found


def virtual_environment(python: Interpreter, wheel: Path) -> dict:
    """Installs with no index into an empty environment and runs smoke.py there."""
    home = WORK / "try"
    run_logged([python.executable, "-m", "venv", "--clear", home], "try-venv")
    pip = [home / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--no-index"]
    run_logged(
        [*pip, "--find-links", wheelhouse(python.version, python.executable), f"{wheel}[demo]"], "try-install"
    )
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "CRENEL"))}
    return {"wheel": wheel.name, **answer([home / "bin" / "python", SMOKE, "nn"], wheel.name, plain)}


def debian(name: str, made: list[tuple[Interpreter, Path]]) -> dict:
    """A bare root made by debootstrap, where the wheel for its own python3 is installed and runs.

    Needs root and the program debootstrap. pip comes as a wheel and installs beside the system, which has
    neither pip nor a compiler.
    """
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise Stop("a Debian root needs the rights of root and debootstrap: apt-get install debootstrap")
    root = WORK / f"root-{name}"
    if not (root / "usr" / "bin" / "python3").exists():
        shutil.rmtree(root, ignore_errors=True)
        run_logged(
            ["debootstrap", "--variant=minbase", "--include=python3", name, root], f"debootstrap-{name}"
        )
    inside = ["chroot", root, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"]
    look = "import shutil, sys; print([c for c in sys.argv[1:] if shutil.which(c)], *sys.version_info[:2])"
    said = subprocess.check_output([*map(str, inside), "python3", "-c", look, *COMPILERS], text=True).split()
    if said[0] != "[]":
        raise Stop(f"this root has a compiler: {said[0]}")
    version = (int(said[1]), int(said[2]))
    tags = [f"cp{version[0]}{version[1]}-cp", *(["-abi3-"] if version >= (3, 12) else [])]
    wheel = next((w for _, w in made if any(t in w.name for t in tags)), None)
    executable = next((p.executable for p, _ in made if p.version == version), None)
    if wheel is None:
        raise Stop(f"{name} has Python {version[0]}.{version[1]}, and no wheel was built for it")
    shelf = root / "wheels"
    shutil.rmtree(shelf, ignore_errors=True)
    shutil.copytree(wheelhouse(version, executable), shelf)
    for file in (wheel, SMOKE):
        shutil.copy2(file, shelf)
    pip = next(f.name for f in shelf.glob("pip-*.whl"))
    into = [*inside, "python3", f"/wheels/{pip}/pip", "install", "--no-index", "--find-links", "/wheels"]
    run_logged([*into, "--target", "/opt/crenel", "--upgrade", f"/wheels/{wheel.name}[demo]"], f"root-{name}")
    found = answer(
        [*inside, "PYTHONPATH=/opt/crenel", "python3", f"/wheels/{SMOKE.name}", "nn"],
        f"Debian {name}",
        {"PATH": os.environ["PATH"]},
    )
    return {"root": name, "wheel": wheel.name, **found}
