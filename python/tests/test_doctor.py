"""`crenel doctor`: what it finds, what it says of it, and that it looks at nothing but what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from needed import needs

import crenel
from crenel import doctor
from crenel.cli import main
from crenel.cli.doctor import shown, text

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    tomllib = needs("test", "tomli")

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = ["installation", "processor", "memory", "secrets", "gpu", "extras", "computing"]


@pytest.fixture(scope="module")
def here():
    return doctor.diagnose()


def test_the_facts_are_those_of_the_library(here):
    assert list(here.facts) == SECTIONS and here.healthy
    assert here.facts["installation"]["version"] == crenel.__version__
    assert here.facts["processor"]["used"] == crenel.device_info("cpu").description
    reason = crenel.cuda_unavailable_reason()
    assert here.facts["gpu"]["why none is used"] == (reason or None)
    assert any(reason in f.text and f.advice for f in here.findings) or not reason
    assert here.facts["computing"]["cpu"].startswith("a product of encrypted numbers, error 2^-")


def test_as_json_and_as_text(here, capfd):
    whole = json.loads(here.to_json())
    assert whole["format"] == 1 and whole["healthy"] is True and whole["facts"] == here.facts
    assert main(["doctor", "--json"]) == 0
    assert list(json.loads(capfd.readouterr().out)["facts"]) == SECTIONS
    assert main(["doctor"]) == 0
    out = capfd.readouterr().out
    assert out.rstrip().endswith("nothing is wrong") and all(f"\n{name}\n" in f"\n{out}" for name in SECTIONS)


def test_the_extras_are_those_of_the_package(monkeypatch):
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for name, packages in doctor.EXTRAS.items():
        assert {p.partition(">")[0] for p in stated[name]} >= set(packages)
    lines = ["numpy>=1.24", "a-b>=1; extra == 'x'", 'c.d; python_version < "3" and extra == "x"']
    lines += ["pytest>=8; extra == 'test'"]
    monkeypatch.setattr(doctor.importlib.metadata, "requires", lambda name: lines)
    assert doctor.extras() == {"x": ("a-b", "c.d")}
    found = doctor.Diagnosis()
    doctor._extras(found, Path("/"))
    assert found.facts["extras"] == {"x": "missing: a-b, c.d"}
    assert found.findings[0].advice == "pip install 'crenel[x]'"

    def absent(name):
        raise doctor.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(doctor.importlib.metadata, "requires", absent)
    assert doctor.extras() == doctor.EXTRAS


def files(root: Path, texts: dict[str, str]) -> Path:
    for name, content in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


def test_a_machine_without_anything_to_read(tmp_path):
    found = doctor.diagnose(tmp_path)
    assert found.healthy and found.facts["memory"]["bytes"] is None
    assert found.facts["gpu"]["device files"] == [] and found.facts["gpu"]["kernel module"] is None


def test_limits_of_a_container(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(doctor.os, "sched_getaffinity", lambda _: set(range(16)))
    texts = {"sys/fs/cgroup/cpu.max": "250000 100000\n", "sys/fs/cgroup/memory.max": f"{4 << 30}\n"}
    found = doctor.diagnose(files(tmp_path, texts))
    assert found.facts["processor"]["cores by the control group"] == "2.5"
    assert found.facts["memory"]["limit of the control group"] == 4 << 30
    assert any("16 threads" in f.text and f.advice == "set OMP_NUM_THREADS=2" for f in found.findings)
    assert any("10 GiB" in f.text for f in found.findings)
    files(tmp_path, {"sys/fs/cgroup/cpu.max": "max 100000\n", "sys/fs/cgroup/memory.max": "max\n"})
    found = doctor.diagnose(tmp_path)
    assert found.facts["processor"]["cores by the control group"] is None
    assert found.facts["memory"]["limit of the control group"] is None


def test_narrow_processors_are_explained(tmp_path, monkeypatch):
    class Narrow:
        description = "some processor, portable, 1 thread"

    monkeypatch.setattr(crenel, "device_info", lambda name: Narrow)
    found = doctor.Diagnosis()
    doctor._processor(found, files(tmp_path, {"proc/cpuinfo": "processor: 0\nflags\t\t: fpu avx2 avx512f\n"}))
    texts = [f.text for f in found.findings]
    assert "AVX-512 is not used: this processor has no avx512dq, avx512bw, avx512vl" in texts
    assert "AVX2 is not used: this processor has no fma" in texts


BUILT = {"CUDA of this build": "13.0", "architectures of this build": "90", "kernel module": "580.1"}
BUILT |= {"CUDA of the driver": "13.0", "device files": ["nvidia0"], "CUDA_VISIBLE_DEVICES": None}


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"CUDA of this build": None}, "install the wheel with CUDA.*there is an NVIDIA driver here"),
        ({"CUDA of this build": None, "kernel module": None, "device files": []}, "nvcc on PATH$"),
        ({"CUDA_VISIBLE_DEVICES": ""}, "hides every GPU"),
        ({"CUDA of the driver": None, "kernel module": None}, "no driver"),
        ({"CUDA of the driver": None}, "libcuda.so.1 is not here"),
        ({"device files": ["nvidia7"]}, "may not open"),
        ({}, "compute capabilities 90"),
    ],
)
def test_why_a_gpu_is_not_used(tmp_path, change, advice):
    root = files(tmp_path, {"dev/nvidia0": ""})
    told = doctor._remedy({**BUILT, **change}, root)
    assert re.search(advice, told), told


def test_a_failure_is_a_problem(monkeypatch):
    def broken(*_, **__):
        raise crenel.DeviceError("no such thing")

    monkeypatch.setattr(crenel.ckks, "Context", broken)
    found = doctor.diagnose()
    assert not found.healthy and found.findings[-1].kind == "problem"
    assert "DeviceError: no such thing" in found.findings[-1].text
    assert "something is wrong" in text(found)
    assert main(["doctor", "--json"]) == 1


def test_few_lockable_bytes_are_told(monkeypatch):
    class Few:
        lock_limit, unlocked_bytes = 65536, 0

    monkeypatch.setattr(crenel, "secret_memory", lambda: Few)
    found = doctor.Diagnosis()
    doctor._secrets(found, Path("/"))
    assert "65,536 bytes may be locked" in found.findings[0].text
    assert shown("may be locked", 65536) == "64.00 KiB" and shown("devices", []) == "-"
