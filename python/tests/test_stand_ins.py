"""Programs on PATH that cannot run, as the stand-ins of version managers: tried before they are chosen."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAND_IN = '#!/bin/sh\necho "pyenv: $(basename "$0"): command not found" >&2\nexit 127\n'
GOOD = "#!/bin/sh\nexit 0\n"


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(text)
    file.chmod(0o755)
    return file


@pytest.fixture
def openfhe():
    spec = importlib.util.spec_from_file_location(
        "compare_openfhe", ROOT / "bench" / "compare" / "openfhe.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def env(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from runner import env

    yield env
    for name in [n for n in sys.modules if n == "runner" or n.startswith("runner.")]:
        del sys.modules[name]


def test_a_stand_in_is_passed_over(openfhe, tmp_path, monkeypatch):
    program(tmp_path / "shims", "python3.10", STAND_IN)
    real = program(tmp_path / "real", "python3.10", GOOD)
    monkeypatch.setenv(
        "PATH", os.pathsep.join([str(tmp_path / "shims"), str(real.parent), "/usr/bin", "/bin"])
    )
    assert openfhe.base_python(None) == real


@pytest.mark.parametrize("named", [False, True])
def test_the_error_says_what_was_tried(openfhe, tmp_path, monkeypatch, named):
    shim = program(tmp_path / "shims", "python3.10", STAND_IN)
    other = program(tmp_path / "shims", "python3", "#!/bin/sh\necho Python 3.12.1 >&2\nexit 1\n")
    monkeypatch.setenv("PATH", str(tmp_path / "shims"))
    program(tmp_path / "shims", "basename", "#!/bin/sh\necho python3.10\n")
    with pytest.raises(SystemExit) as caught:
        openfhe.openfhe_python(str(shim) if named else None)
    text = str(caught.value)
    assert f"{shim}: exit code 127: pyenv: python3.10: command not found" in text and "--python" in text
    assert (f"{other}: exit code 1: Python 3.12.1" in text) == (not named)


def test_nothing_to_try(openfhe, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="no python3.10 and no python3 on PATH"):
        openfhe.base_python(None)
    with pytest.raises(SystemExit, match="No such file"):
        openfhe.base_python(str(tmp_path / "absent"))


def test_the_tools_try_too(env, tmp_path, monkeypatch):
    """A ccache or make that does not start is as good as none; the line to type names its package."""
    program(tmp_path, "ccache", STAND_IN)
    program(tmp_path, "make", STAND_IN)
    good = program(tmp_path, "g++", GOOD)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    assert env.runnable("ccache") is None and env.runnable("g++") == str(good)
    from runner import package, shell

    assert "CMAKE_CXX_COMPILER_LAUNCHER" not in package.Toolchain("g++", None).defines()
    program(tmp_path, "apt-get", GOOD)
    monkeypatch.setattr(env, "OFFLINE", False)
    monkeypatch.setattr(env.os, "geteuid", lambda: 1000)
    with pytest.raises(shell.Stop, match="sudo apt-get install -y make$"):
        env.programs({"make": "make", "g++": "g++"}, "why")
    monkeypatch.setattr(env, "OFFLINE", True)
    with pytest.raises(shell.Stop, match="CRENEL_OFFLINE=1 forbids.*: make$"):
        env.programs({"make": "make"}, "why")


@pytest.mark.parametrize("required", [False, True])
def test_tools_of_the_hardware_unit_are_missed_aloud(env, monkeypatch, capsys, required):
    from runner import fhecore, shell, verdict
    from runner.counts import Counts

    def absent(*_):
        raise shell.Stop("make is missing. Type:\n    sudo apt-get install -y make")

    monkeypatch.setattr(env, "pip_install", lambda *_: None)
    monkeypatch.setattr(env, "programs", absent)
    monkeypatch.setenv("CRENEL_REQUIRE", "fhecore" if required else "cuda")
    if required:
        with pytest.raises(shell.Stop, match="make"):
            fhecore.install_tools()
        return
    fhecore.install_tools()
    capsys.readouterr()
    verdict.close(Counts(passed=1), "", gpu=False, whole=False)
    assert "sudo apt-get install -y make" in capsys.readouterr().out
