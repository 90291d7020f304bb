"""Versions, the form of the changelog, and what tools/release looks for in wheels (made by ./run wheel)."""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path

import pytest
from needed import needs

import crenel

ROOT = Path(__file__).resolve().parents[2]
NUMBER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?")
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
VERSION = (ROOT / "VERSION").read_text(encoding="utf-8").strip()


@pytest.fixture
def audit(monkeypatch):
    needs("release", "elftools")
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from release import audit

    return audit


def test_one_version_everywhere():
    assert NUMBER.fullmatch(VERSION) and crenel.__version__ == VERSION
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"^version: \"?{re.escape(VERSION)}\"?$", citation, re.MULTILINE)


def test_the_changelog_has_its_form():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## \[([^\]]+)\](.*)$", text, re.MULTILINE)
    assert sections[0] == ("Unreleased", "")
    released = [name for name, _ in sections[1:]]
    for name, rest in sections[1:]:
        assert NUMBER.fullmatch(name) and re.fullmatch(r" - \d{4}-\d{2}-\d{2}", rest)
    numbers = [tuple(map(int, name.partition("-")[0].split("."))) for name in released]
    assert numbers == sorted(numbers, reverse=True)
    assert set(re.findall(r"^### (.+)$", text, re.MULTILINE)) <= set(KINDS)


def test_a_version_that_is_not_released_is_nowhere_of_the_past():
    """Until the changelog has a section of it, pages speak of commits, of no release: only the page of
    releases says what VERSION will be, and kept files are of it, as they are of what is released."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d[^\]]*)\]", changelog, re.MULTILINE)
    kept = {folder.name for folder in (ROOT / "tests" / "compat").iterdir() if folder.is_dir()}
    assert {f for f in kept if NUMBER.fullmatch(f)} <= {*released, VERSION}
    coming = f"This will be {VERSION}, the first release."
    page = (ROOT / "docs" / "reference" / "releases.md").read_text(encoding="utf-8")
    assert (coming in changelog) == (not released) == ("No version is released yet." in page)
    if VERSION in released:
        return
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {page.relative_to(ROOT).as_posix() for page in pages if spoken(page.read_text(encoding="utf-8"))}
    notes = {page for page in named if page.startswith("docs/notes/")}  # names of wheels
    assert named - notes == {"docs/reference/releases.md"}
    assert not spoken(changelog.replace(coming, ""))


def spoken(text: str) -> bool:
    """Is VERSION named?"""
    return re.search(rf"(?<![\w.]){re.escape(VERSION)}(?!\w)", text) is not None


def library(stack: int = 6, runpath: str = "") -> bytes:
    """The extension as it was built, with another mark for its stack where that is wanted."""
    data = bytearray(Path(crenel._crenel.__file__).read_bytes())
    offset, size, count = (int.from_bytes(data[a : a + n], "little") for a, n in ((32, 8), (54, 2), (56, 2)))
    for at in range(offset, offset + size * count, size):
        if int.from_bytes(data[at : at + 4], "little") == 0x6474E551:  # PT_GNU_STACK
            data[at + 4 : at + 8] = stack.to_bytes(4, "little")
    return bytes(data)


def wheel(
    folder: Path, leave: str = "", name: str = "crenel-0.1.0-cp312-abi3-manylinux_2_35_x86_64", **stack
) -> Path:
    """Something with the members of a wheel, but for those that end with `leave`."""
    info = "crenel-0.1.0.dist-info"
    texts = [f"{info}/licenses/LICENSE", f"{info}/sboms/crenel.cdx.json", f"{info}/RECORD"]
    texts += [f"{info}/licenses/licenses/{n}.txt" for n in ("nanobind", "robin-map", "libgomp", "GPL-3.0")]
    path = folder / f"{name}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member in (*texts, "crenel/py.typed", "crenel/_crenel.pyi"):
            if not leave or not member.endswith(leave):
                archive.writestr(zipfile.ZipInfo(member), member)
        archive.writestr(zipfile.ZipInfo("crenel/_crenel.abi3.so"), library(**stack))
    return path


def test_a_wheel_is_examined(audit, tmp_path):
    from runner.shell import Stop

    has = audit.kernels(library())  # for the GPUs of whoever built this
    here = [each.removeprefix("compute_") for each in has if each.startswith("compute_")]
    found = audit.examine(wheel(tmp_path), architectures=here)
    assert found.get("kernels", []) == has
    assert found["libraries"]["crenel/_crenel.abi3.so"] > 1 << 20 and found["members"] == 10
    wrong = {
        "no manylinux tag": {"name": "crenel-0.1.0-cp312-abi3-linux_x86_64"},
        "executable stack": {"stack": 7},
        "robin-map.txt is missing": {"leave": "robin-map.txt"},
        "crenel.cdx.json is missing": {"leave": "crenel.cdx.json"},
        "py.typed is missing": {"leave": "py.typed"},
    }
    for message, change in wrong.items():
        with pytest.raises(Stop, match=message):
            audit.examine(wheel(tmp_path, **change), architectures=here)
    expected = ", ".join(audit.targets(["75-real", "80"]))
    assert expected == "compute_80, sm_75, sm_80" and audit.targets(["90-virtual"]) == ["compute_90"]
    with pytest.raises(Stop, match=f"kernels for {', '.join(has) or 'no GPU'}, expected {expected}"):
        audit.examine(wheel(tmp_path), architectures=["75-real", "80"])


def test_code_for_one_processor_is_found(audit, tmp_path):
    assert "compile_commands.json is missing" in audit.tuned(tmp_path)[0]
    commands = [{"file": "a.cpp", "command": "g++ -O3 -mavx2 a.cpp"}]
    file = tmp_path / "compile_commands.json"
    file.write_text(json.dumps(commands))
    assert audit.tuned(tmp_path) == []
    file.write_text(json.dumps([*commands, {"file": "b.cpp", "command": "g++ -march=native b.cpp"}]))
    assert audit.tuned(tmp_path) == ["b.cpp is compiled with -march=native"]


def test_differences_of_two_builds(audit, tmp_path):
    (tmp_path / "b").mkdir()
    first, second = wheel(tmp_path), wheel(tmp_path / "b", leave="py.typed")
    assert audit.differences(first, first) == [] and audit.differences(first, second) == ["crenel/py.typed"]


def test_the_bill_of_materials(audit, tmp_path):
    needs("release", "cyclonedx")
    nanobind = needs("build", "nanobind")
    from release import sbom

    arguments = ("0.1.0", "a" * 40, "b" * 64, 1_700_000_000, Path(nanobind.__path__[0]))
    text = sbom.document(*arguments)
    assert text == sbom.document(*arguments)
    found = json.loads(text)
    assert [part["name"] for part in found["components"]] == ["nanobind", "robin-map"]
    root = found["metadata"]["component"]
    assert root["properties"] == [{"name": "crenel:commit", "value": "a" * 40}]
    assert "cuda-runtime" in sbom.document(*arguments, "13.0.88")
    with pytest.raises(ValueError, match="no version of nothing"):
        sbom.pinned("nothing")


def test_interpreters_are_looked_for(audit, tmp_path):
    from release import build
    from runner.shell import Stop

    found = build.interpreters([sys.executable])
    assert found[0].version == sys.version_info[:2]
    assert (
        build.Interpreter("x", (3, 13)).tag == "cp313-abi3" and build.Interpreter("x", (3, 11)).tag == "cp311"
    )
    with pytest.raises(Stop, match="no Python that runs"):
        build.interpreters([str(tmp_path / "python")])


def test_the_note_is_what_was_found(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from release import report

    found = json.loads((ROOT / "bench/results/wheels-x86_64.json").read_text(encoding="utf-8"))
    note = (ROOT / "docs/notes/release.md").read_text(encoding="utf-8")
    file = ROOT / "bench/results/wheels-cuda-x86_64.json"
    cuda = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
    assert note == report.rendered(found, cuda)
    other = {**found, "second build": {"equal": False, "different members": ["a.so"]}}
    assert "differs in\n`a.so`." in report.rendered(other)
    with_cuda = {**found, "provenance": {**found["provenance"], "cuda": "13.0.88"}}
    with_cuda["tried"] = [{**found["tried"][0], "model": "a model of a GPU"}]
    text = report.rendered(found, with_cuda).partition("## With CUDA")[2]
    assert "; CUDA 13.0.88; " in text and "| model of a GPU |" in text and "| a model of a GPU |" in text
