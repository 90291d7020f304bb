"""./run lint knows every file that is made of the code or of records (tools/runner/generated.py)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Programs that take --check and are not called: what they compare is a search of minutes, or a synthesis.
LONG = {"tools/gen_comparators.py", "fhecore/syn/__main__.py"}
NOT_THEIRS = {"tools/runner", "fhecore/sim/ingest.py", "fhecore/sim/collect.py", "fhecore/sim/frontier.py"}

WRITES = re.compile(r"environ\.get\(.CRENEL_UPDATE_DOCS")


@pytest.fixture
def generated(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from runner import generated

    yield generated
    for name in [n for n in sys.modules if n == "runner" or n.startswith("runner.")]:
        del sys.modules[name]
    sys.modules.pop("cuda_toolchain", None)


def test_every_program_that_compares_is_called(generated):
    called = {word.replace(".", "/") for made in generated.MADE for word in made.command[:2]}
    files = [f for folder in ("tools", "bench", "fhecore", "tests") for f in (ROOT / folder).rglob("*.py")]
    for file in files:
        name = file.relative_to(ROOT).as_posix()
        if '"--check"' in file.read_text() and name not in LONG and not name.startswith(tuple(NOT_THEIRS)):
            assert name.replace(".", "/") in called or name == "fhecore/sim/pages.py", name
    assert {"fhecore/sim", "crenel"} < called


def test_every_test_that_writes_is_marked(generated):
    marked = generated.marked()
    assert "python/tests/serve/test_docs.py" in marked and "fhecore/dv/test_worst_case.py" in marked
    for folder in generated.TESTS:
        for file in (ROOT / folder).rglob("test_*.py"):
            if WRITES.search(file.read_text()):
                assert file.relative_to(ROOT).as_posix() in marked


@pytest.mark.parametrize("fix", [False, True])
def test_what_is_stale_is_named(generated, monkeypatch, tmp_path, capsys, fix):
    ran = []

    def run(command, *, env, check):
        ran.append((command, env))
        return "tools/gen_costs.py" in command

    monkeypatch.setattr(generated, "run", run)
    monkeypatch.setattr(generated, "stage_package", lambda: tmp_path)
    monkeypatch.setattr(generated.env, "pip_install", lambda *groups: None)
    monkeypatch.setattr(generated.package, "is_of_these_sources", lambda: True)
    assert generated.check(fix) == ["times of nn's operations"]
    assert "times of nn's operations; ./run lint --quick --fix" in capsys.readouterr().out
    assert all(env["PYTHONPATH"].startswith(str(tmp_path)) for _, env in ran)
    assert all(("CRENEL_UPDATE_DOCS" in env) == fix for _, env in ran)
    programs = [command for command, _ in ran if "pytest" not in command and command[1] == "-B"]
    assert len(programs) == len(generated.MADE) and all(("--check" in c) != fix for c in programs)
    monkeypatch.setattr(generated, "stage_package", lambda: None)
    assert generated.check(fix) == [] and "the package is not built" in capsys.readouterr().out


def test_a_stub_without_its_extension_and_a_folder_that_cannot_be_written(generated, monkeypatch, tmp_path):
    stub = tmp_path / "crenel" / "_crenel.pyi"
    stub.parent.mkdir()
    stub.write_text("")
    monkeypatch.setattr(generated.typed, "installed_stub", lambda: stub)
    monkeypatch.setattr(generated, "SITE", tmp_path / "site")
    assert generated.stage_package() is None and not (tmp_path / "site").exists()
    (stub.parent / "_crenel.abi3.so").write_bytes(b"")
    assert generated.stage_package() == generated.stage_package() == tmp_path / "site"
    assert (tmp_path / "site" / "crenel" / "_crenel.abi3.so").is_symlink()
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(generated, "SITE", tmp_path / "file" / "site")
    with pytest.raises(generated.Stop, match="cannot be written, remove it"):
        generated.stage_package()
