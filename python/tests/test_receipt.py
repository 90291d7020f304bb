"""The receipt of the GPU suite (tools/runner): what makes it stale, what it says of skips, the last line."""

from __future__ import annotations

import json
import random
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GPU = {"name": "A GPU", "driver": "1.2.3", "capability": "9.0"}
COVERED = [
    "CMakeLists.txt",
    "VERSION",
    "cmake/Options.cmake",
    "include/crenel/core/error.h",
    "fhecore/model/barrett.h",
    "params/*",
    "src/CMakeLists.txt",
    "src/backends/ref/**/*.cpp",
    "src/backends/cpu/**/*.cpp",
    "src/backends/cuda/**/*.cu",
    "src/backends/host/**/*.cpp",
    "src/rlwe/*.cpp",
    "src/ckks/*.cpp",
    "src/circuits/**/*.cpp",
    "src/tfhe/*.cpp",
    "src/serialize/*.cpp",
    "src/core/*.cpp",
    "bench/boot/*.cpp",
    "python/src/*.cpp",
    "python/crenel/*.py",
    "python/tests/*.py",
    "examples/*.cpp",
    "tests/CMakeLists.txt",
    "tests/unit/ckks/*.cpp",
    "tests/conformance/*.cpp",
    "tests/noise/*.cpp",
    "tests/golden/*.txt",
    "tests/golden/wire/*",
    "tests/support/*",
    "tests/fuzz/corpus/*",
]
NOT_COVERED = ["README.md", "docs/architecture.md", "bench/results/new.json", "tools/runner/new.py"]


@pytest.fixture
def runner(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from runner import counts, receipt, verdict

    yield counts, receipt, verdict
    for name in [n for n in sys.modules if n == "runner" or n.startswith("runner.")]:
        del sys.modules[name]
    sys.modules.pop("cuda_toolchain", None)


@pytest.fixture
def checkout(runner, tmp_path, monkeypatch):
    """A copy of what the receipt covers, with a receipt of its own."""
    counts, receipt, _ = runner
    for room in receipt.ROOMS:
        source, copy = ROOT / room, tmp_path / room
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", "*.pyc", "*.so"))
        else:
            shutil.copyfile(source, copy)
    monkeypatch.setattr(receipt.cuda, "gpus", lambda: [GPU])
    receipt.write(counts.Counts(passed=3), tmp_path)
    assert receipt.staleness(tmp_path) == []
    return tmp_path


def test_one_byte_makes_it_stale(runner, checkout):
    _, receipt, _ = runner
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    for pattern in COVERED:
        files = sorted(f for f in checkout.glob(pattern) if f.is_file())
        assert files, f"nothing matches {pattern}: the list of this test is out of date"
        file = draw.choice(files)
        before = file.read_bytes()
        content = bytearray(before or b"\0")
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        file.write_bytes(content)
        lines = receipt.staleness(checkout)
        name = file.relative_to(checkout).as_posix()
        rooms = [line.split(",")[0].split(" (")[0].strip() for line in lines if line.startswith("    ")]
        assert len(rooms) == 1 and name.startswith(rooms[0].removesuffix("*")), (name, lines)
        assert "stale" in lines[0] and "1 of" in lines[0] and GPU["name"] in lines[1]
        file.write_bytes(before)
    assert receipt.staleness(checkout) == []


def test_every_folder_of_the_sources_is_a_room(runner):
    _, receipt, _ = runner
    rooms = receipt.rooms()
    for top in ("src", "src/backends", "tests"):
        folders = {f.name for f in (ROOT / top).iterdir() if f.is_dir()} - {"__pycache__"}
        missing = {name for name in folders if f"{top}/{name}" not in rooms} - {"backends"}
        assert missing == set(), f"{top}: {missing}"


def test_what_no_gpu_test_reads_leaves_it_fresh(runner, checkout):
    _, receipt, _ = runner
    for name in NOT_COVERED:
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("anything")
    assert receipt.staleness(checkout) == []


def test_new_and_deleted_files_and_rooms(runner, checkout):
    _, receipt, _ = runner
    shutil.rmtree(checkout / "src" / "ckks")
    (checkout / "src" / "lattice").mkdir()
    (checkout / "src" / "lattice" / "new.cpp").write_text("")
    (checkout / "python" / "crenel" / "new.py").write_text("")
    text = "\n".join(receipt.staleness(checkout))
    assert "src/ckks (is gone)" in text and "src/lattice (is new)" in text and "python/crenel" in text
    assert "3 of" in text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "is missing"),
        ("{", "cannot be read"),
        ("[]", "another form"),
        ('{"sources_sha256": "37c7", "tests_passed": 3052}', "another form"),
        ('{"format": 2, "rooms": 3}', "another form"),
    ],
)
def test_a_receipt_that_proves_nothing(runner, tmp_path, content, said):
    _, receipt, _ = runner
    if content is not None:
        (tmp_path / "tests").mkdir()
        (tmp_path / receipt.NAME).write_text(content)
    assert said in "\n".join(receipt.staleness(tmp_path))


def test_a_part_is_said_to_be_one(runner, checkout):
    _, receipt, _ = runner
    record = json.loads((checkout / receipt.NAME).read_text())
    (checkout / receipt.NAME).write_text(json.dumps({**record, "missing": "the Python tests"}))
    assert receipt.staleness(checkout) == [
        f"{receipt.NAME} covers a part of the suite. Not run on a GPU: the Python tests."
    ]


CTEST = """<testsuite><testcase name="unit_tests" status="run"><system-out>
[==========] 5 tests from 2 test suites ran. (3 ms total)
[  PASSED  ] 2 tests.
[  SKIPPED ] 3 tests.
</system-out></testcase>
<testcase name="example" status="run"><system-out>fine</system-out></testcase>
<testcase name="absent" status="notrun"><system-out></system-out><skipped message="x"/></testcase></testsuite>
"""
GOOGLETEST = """<testsuites><testsuite name="A">
<testcase name="one/cuda" classname="Devices/A" status="run" result="skipped">
<skipped message="devices.h:82&#x0A;cuda:0: no GPU&#x0A;is here"/></testcase>
<testcase name="two/cuda" classname="Devices/A" status="run" result="skipped">
<skipped message="devices.h:82&#x0A;cuda:0: no GPU&#x0A;is here"/></testcase>
<testcase name="three" classname="B" status="run" result="skipped">
<skipped message="b.cpp:3&#x0A;"/></testcase>
<testcase name="four" classname="B" status="run" result="completed"/>
</testsuite></testsuites>
"""
PYTEST = """<testsuites><testsuite><testcase classname="t.x" name="test_a[cuda:0]">
<skipped type="pytest.skip" message="cuda:0: no GPU is here">where</skipped></testcase>
<testcase classname="t.x" name="test_b"/></testsuite></testsuites>
"""


def counted(counts, folder: Path):
    (folder / "googletest").mkdir()
    (folder / "ctest.xml").write_text(CTEST)
    (folder / "googletest" / "unit_tests.xml").write_text(GOOGLETEST)
    (folder / "pytest.xml").write_text(PYTEST)
    total = counts.from_ctest(folder / "ctest.xml", folder / "googletest")
    total.merge(counts.from_pytest(folder / "pytest.xml"))
    return total


def test_skips_keep_their_names_and_reasons(runner, tmp_path):
    counts, _, _ = runner
    total = counted(counts, tmp_path)
    assert total.line() == "4 passed, 0 failed, 5 skipped" and total.cuda_skipped == 3
    reasons = total.by_reason()
    assert list(reasons)[0] == "cuda:0: no GPU is here"
    assert reasons["cuda:0: no GPU is here"] == [
        "Devices/A.one/cuda",
        "Devices/A.two/cuda",
        "t.x::test_a[cuda:0]",
    ]
    assert reasons["b.cpp:3"] == ["B.three"] and reasons["ctest: notrun"] == ["absent"]


def test_a_program_without_a_report_still_counts_its_skips(runner, tmp_path):
    counts, _, _ = runner
    (tmp_path / "ctest.xml").write_text(CTEST)
    total = counts.from_ctest(tmp_path / "ctest.xml", tmp_path)
    assert total.skipped == 4 and counts.NO_REASON in total.by_reason()


def test_the_receipt_has_the_reasons(runner, checkout, tmp_path):
    counts, receipt, _ = runner
    total = counted(counts, tmp_path)
    receipt.write(total, checkout)
    record = json.loads((checkout / receipt.NAME).read_text())
    assert record["tests_skipped"] == 5 == sum(entry["count"] for entry in record["skipped"])
    assert record["skipped"][0]["tests"][0] == "Devices/A.one/cuda"


def test_stale_comes_last_and_skips_with_their_reasons(runner, tmp_path, monkeypatch, capsys):
    counts, receipt, verdict = runner
    monkeypatch.setattr(verdict, "LOGS", tmp_path)
    monkeypatch.setattr(receipt, "staleness", lambda: ["the receipt is stale: src/ckks"])
    assert verdict.close(counted(counts, tmp_path), "", gpu=False, whole=True) == 0
    lines = capsys.readouterr().out.splitlines()
    count = lines.index("4 passed, 0 failed, 5 skipped")
    assert "!! the receipt is stale: src/ckks" in lines[count + 1 :]
    assert lines[-1].startswith("!!!!") and not any("stale" in line for line in lines[:count])
    assert any(line.split() == ["3", "cuda:0:", "no", "GPU", "is", "here"] for line in lines[:count])
    assert "Devices/A.two/cuda" in (tmp_path / "skipped.txt").read_text()


@pytest.mark.parametrize("gpu", [False, True])
def test_verdicts(runner, tmp_path, monkeypatch, capsys, gpu):
    counts, receipt, verdict = runner
    monkeypatch.setattr(verdict, "LOGS", tmp_path)
    monkeypatch.setattr(receipt, "staleness", lambda: [])
    assert verdict.close(counts.Counts(), "", gpu=False, whole=False) == 1  # no test ran
    assert verdict.close(counted(counts, tmp_path), "", gpu=gpu, whole=False) == gpu
    assert ("3 CUDA tests were skipped" in capsys.readouterr().out) == gpu


def test_the_commit_since_when(runner, checkout, monkeypatch):
    """In a repository of its own: the first commit after the receipt's that touched the room."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    _, receipt, _ = runner
    from runner import changes

    identity = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false"]

    def git(*arguments):
        command = ["git", *identity, "-C", str(checkout), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    record = json.loads((checkout / receipt.NAME).read_text())
    record["commit"] = git("rev-parse", "HEAD")
    (checkout / receipt.NAME).write_text(json.dumps(record))
    (checkout / "src" / "ckks" / "new.cpp").write_text("")
    git("add", ".")
    git("commit", "-qm", "a new source")
    (checkout / "VERSION").write_text("9")
    assert changes.git("rev-parse", "HEAD", root=checkout) == git("rev-parse", "HEAD")
    text = "\n".join(receipt.staleness(checkout))
    assert f"src/ckks, since {git('rev-parse', '--short', 'HEAD')} a new source" in text
    assert "VERSION, not committed" in text
