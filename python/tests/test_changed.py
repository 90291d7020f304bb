"""What ./run test checks of what changed (tools/runner): never silently nothing, and faults are found."""

from __future__ import annotations

import secrets
import shutil
import statistics
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IDENTITY = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false"]


@pytest.fixture
def runner(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.delenv("CRENEL_BASE", raising=False)
    from runner import changes, counts, sanitized, shell, tidy

    yield changes, tidy, sanitized, counts, shell
    for name in [n for n in sys.modules if n == "runner" or n.startswith("runner.")]:
        del sys.modules[name]
    sys.modules.pop("cuda_toolchain", None)


def write(root: Path, name: str, text: str = "", mode: int = 0o644) -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return file


def git(root: Path, *arguments: str) -> str:
    command = ["git", *IDENTITY, "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(root: Path, *names: str) -> str:
    for name in names:
        write(root, name, secrets.token_hex())
    git(root, "add", ".")
    git(root, "commit", "-qm", "a commit")
    return git(root, "rev-parse", "HEAD")


@pytest.fixture
def checkout(tmp_path):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    root = tmp_path / "checkout"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    commit(root, "src/a.cpp")
    return root


# -- against what ---------------------------------------------------------------------------------------


def test_without_history_everything_counts(runner, checkout, tmp_path):
    changes, *_ = runner
    for root in (checkout, tmp_path):
        found = changes.changes(root)
        assert found.files is None and "everything counts as changed" in found.why
    write(checkout, "inside/src/b.cpp")  # an archive unpacked inside somebody's checkout
    assert changes.changes(checkout / "inside").files is None


def test_the_last_commit_and_what_is_not_committed(runner, checkout):
    changes, *_ = runner
    first = git(checkout, "rev-parse", "HEAD")
    commit(checkout, "src/b.cpp", "name with blank.txt")
    write(checkout, "src/new.cpp")
    write(checkout, "src/a.cpp", "other")
    found = changes.changes(checkout)
    assert found.files == ["name with blank.txt", "src/a.cpp", "src/b.cpp", "src/new.cpp"]
    assert first[:12] in found.why and "commit before HEAD" in found.why


def test_a_branch_is_compared_with_where_it_began(runner, checkout, tmp_path):
    changes, *_ = runner
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(checkout), str(clone)], check=True)
    git(clone, "checkout", "-qb", "work", "--no-track")
    commit(clone, "src/b.cpp")
    commit(clone, "src/c.cpp")
    found = changes.changes(clone)
    assert found.files == ["src/b.cpp", "src/c.cpp"] and "origin/HEAD" in found.why


def test_the_base_that_is_named(runner, checkout, monkeypatch):
    changes, *_, shell = runner
    first = git(checkout, "rev-parse", "HEAD")
    commit(checkout, "src/b.cpp")
    commit(checkout, "src/c.cpp")
    (checkout / "src" / "b.cpp").unlink()  # deleted: nothing to check in it
    monkeypatch.setenv("CRENEL_BASE", first)
    assert changes.changes(checkout).files == ["src/c.cpp"]
    monkeypatch.setenv("CRENEL_BASE", "no-such-commit")
    with pytest.raises(shell.Stop, match="CRENEL_BASE=no-such-commit"):
        changes.changes(checkout)


# -- clang-tidy -----------------------------------------------------------------------------------------


@pytest.fixture
def sources(tmp_path):
    write(tmp_path, "src/x/x.h", '#include "y/y.h"\n')
    write(tmp_path, "src/x/x.cpp", '#include "x/x.h"\n')
    write(tmp_path, "src/y/y.h", "int y;\n")
    write(tmp_path, "src/z/z.cpp", '#include "y/y.h"\n')
    write(tmp_path, "src/z/alone.cpp", "int z;\n")
    write(tmp_path, ".clang-tidy", "Checks: '-*'\n")
    return tmp_path


NAMES = ["src/x/x.cpp", "src/z/alone.cpp", "src/z/z.cpp"]


def plan(runner, root, files, salt="1"):
    changes, tidy, *_ = runner
    every = [f.relative_to(root).as_posix() for f in (root / "src").rglob("*") if f.is_file()]
    return tidy.changed(NAMES, changes.Includes(root, every), changes.Changes(files, "why"), salt)


def test_headers_are_read_through_a_source(runner, sources):
    assert plan(runner, sources, ["src/z/alone.cpp"]).sources == ["src/z/alone.cpp"]
    assert plan(runner, sources, ["src/x/x.h"]).sources == ["src/x/x.cpp"]
    assert plan(runner, sources, ["src/y/y.h"]).sources == ["src/z/z.cpp"]  # it includes least besides
    assert plan(runner, sources, ["README.md"]).sources == []


def test_where_everything_counts_all_are_meant(runner, sources):
    starts = {tuple(plan(runner, sources, None, salt=str(i)).sources) for i in range(40)}
    assert len(starts) == len(NAMES) and all(sorted(found) == NAMES for found in starts)
    assert plan(runner, sources, [".clang-tidy"]).sources == []  # ./run lint checks all by it


@pytest.fixture
def tidied(runner, sources, monkeypatch):
    """tidy.check of the sources above, by a tool that complains of the word BAD in a source or in y.h."""
    changes, tidy, *_ = runner
    tool = write(
        sources,
        "clang-tidy",
        '#!/bin/sh\nfor a; do :; done\n[ "$1" = --version ] && exit 0\necho "$a" >> ran\n'
        '! grep BAD "$a" src/y/y.h\n',
        0o755,
    )
    for name, value in {"ROOT": sources, "BUILD": sources / "b", "CLEAN": sources / "b" / "clean"}.items():
        monkeypatch.setattr(tidy, name, value)
    monkeypatch.setattr(tidy.env, "pip_install", lambda *_: None)
    monkeypatch.setattr(tidy.env, "tool", lambda _: str(tool))
    monkeypatch.setattr(tidy, "_commands", lambda: dict.fromkeys(NAMES, "c++"))
    return tidy


def test_findings_fail_and_what_is_clean_is_remembered(tidied, sources, capsys):
    ran = sources / "ran"
    assert tidied.check("whole") == (0, 3) and len(ran.read_text().split()) == 3
    assert tidied.check("whole") == (0, 3) and len(ran.read_text().split()) == 3
    write(sources, "src/y/y.h", "int BAD;\n")  # x.cpp and z.cpp include it
    assert tidied.check("whole") == (2, 3) and len(ran.read_text().split()) == 5
    assert tidied.check("whole") == (2, 3)  # a finding is not remembered as clean
    assert "int BAD" in capsys.readouterr().out
    write(sources, "src/y/y.h", "int y;\n")
    write(sources, ".clang-tidy", "Checks: '*'\n")
    ran.unlink()
    assert tidied.check("whole") == (0, 3) and len(ran.read_text().split()) == 3


def test_a_finding_fails_the_run(runner, tidied, sources):
    *_, counts, _ = runner
    write(sources, "src/z/z.cpp", "BAD\n")
    total = counts.Counts()
    tidied.count(total, 60)  # no git here: everything
    assert total.failed == 1 and "1 sources with findings" in total.failures[0]


def test_time_that_is_up_is_said(tidied, capsys):
    assert tidied.check("changed", -1) == (0, 0)
    assert "3 more were not begun" in capsys.readouterr().out


@pytest.mark.parametrize("required", [False, True])
def test_no_clang_tidy(runner, monkeypatch, required):
    _, tidy, _, counts, shell = runner

    def absent(*_):
        raise shell.Stop("no wheel")

    monkeypatch.setattr(tidy.env, "pip_install", absent)
    monkeypatch.setenv("CRENEL_REQUIRE", "tidy" if required else "")
    if required:
        with pytest.raises(shell.Stop):
            tidy.count(counts.Counts(), 1)
        return
    tidy.count(counts.Counts(), 1)
    assert any("clang-tidy did not run: no wheel" in text for text in shell.remembered)


# -- sanitizers and fuzzers -----------------------------------------------------------------------------


def test_loaders_and_threads_always(runner):
    changes, _, sanitized, *_ = runner
    tests = [f.relative_to(ROOT).as_posix() for f in (ROOT / "tests").rglob("*_test.cpp")]
    every = [
        changes.Changes(None, "no history"),
        changes.Changes([], "nothing"),
        changes.Changes(tests, "tests"),
    ]
    chosen = [sanitized.choose(ROOT, found) for found in every]
    for found, choice in zip(every, chosen, strict=True):
        assert found.why in choice.why and not set(choice.always) & set(choice.more)
        assert choice.always == chosen[0].always  # whatever changed
    assert {f for f in chosen[0].always if f.startswith("tests/unit/serialize/")} == {
        f.relative_to(ROOT).as_posix() for f in (ROOT / "tests/unit/serialize").glob("*_test.cpp")
    }
    assert "tests/integration/ckks_streams_test.cpp" in chosen[0].always  # starts threads


def test_tests_of_what_changed(runner):
    changes, _, sanitized, *_ = runner

    def more(*names):
        choice = sanitized.choose(ROOT, changes.Changes(list(names), ""))
        return choice.more, choice.why

    assert more("src/ckks/evaluator.cpp")[0] == ["tests/unit/ckks/evaluator_test.cpp"]
    assert more("include/crenel/ckks/evaluator.h")[0] == ["tests/unit/ckks/evaluator_test.cpp"]
    assert more("tests/unit/math/primes_test.cpp")[0] == ["tests/unit/math/primes_test.cpp"]
    assert set(more("src/math/shoup.h")[0]) >= {"tests/unit/math/primes_test.cpp"}  # its folder's
    assert more("docs/architecture.md")[0] == []
    folder = "src/circuits/bootstrapping/plan.cpp"  # without a test of its name: the folder's, which are many
    assert len(more(folder)[0]) == sanitized.MOST
    assert "tests/unit/ckks/evaluator_test.cpp" in more(folder, "src/ckks/evaluator.cpp")[0]
    files, why = more(*(f.relative_to(ROOT).as_posix() for f in (ROOT / "tests/unit").rglob("*_test.cpp")))
    assert len(files) == sanitized.MOST and "left to ./run test --sanitize: tests/unit/" in why


REPORT = """<testsuites><testcase name="{program}" status="{status}">
<system-out>{out}</system-out></testcase></testsuites>"""
RAN = "[==========] 3 tests from 1 test suite ran. (1 ms total)\n[  PASSED  ] 1 test.\n"
LATE = "x.cpp:1: Skipped\nthe time of 60 s for tests of what changed under sanitizers was over\n"
SKIPPED = "[  SKIPPED ] 2 tests, listed below:\n"


@pytest.mark.parametrize(
    ("status", "said", "counted", "names"),
    [
        ("run", RAN + 2 * LATE + SKIPPED, (1, 0, 2), []),
        ("run", RAN.replace("3 tests", "1 tests"), (1, 0, 0), []),
        ("fail", "***Timeout 420 sec\nrunning A.a\nrunning B.b/cpu\n", (0, 1, 0), ["p: B.b/cpu did not end"]),
        ("fail", "running A.a\nAddressSanitizer: heap-use-after-free\n", (0, 1, 0), ["p"]),
    ],
)
def test_what_time_left_and_what_hangs(runner, tmp_path, monkeypatch, status, said, counted, names):
    """A skip is told, a hang is a failure with the name of the test."""
    _, _, sanitized, counts, shell = runner
    for module in (shell, sanitized):
        monkeypatch.setattr(module, "LOGS", tmp_path)
    monkeypatch.setattr(sanitized.ctests.pytests, "ROOT", tmp_path)
    monkeypatch.setattr(shell, "remembered", [])

    def ctest(command, log, *, env, check):
        assert env["GTEST_FILTER"].startswith("-") and command[-2:] == ["-R", "^p$"]
        (tmp_path / f"{log}.log").write_text(said)
        write(tmp_path, "build/logs/p.log", said)
        write(tmp_path, "ctest.xml", REPORT.format(program="p", status=status, out=said))
        return int(status == "fail")

    monkeypatch.setattr(sanitized.ctests, "run_logged", ctest)
    monkeypatch.setattr(sanitized.ctests.env, "tool", lambda name: name)
    total = counts.Counts()
    sanitized._tests("p", total, {}, tmp_path)
    assert (total.passed, total.failed, total.skipped) == counted and total.failures == names
    assert bool(shell.remembered) == bool(total.skipped)
    assert all("2 tests of what changed were not begun" in text for text in shell.remembered)


@pytest.mark.parametrize("changed", [False, True])
def test_no_test_under_sanitizers(runner, tmp_path, monkeypatch, changed):
    """A failure of what always runs; of what changed all may be left out, which is told."""
    _, _, sanitized, counts, shell = runner
    monkeypatch.setattr(shell, "remembered", [])
    monkeypatch.setattr(sanitized, "LOGS", tmp_path)
    monkeypatch.setattr(sanitized.ctests, "run", lambda *_: None)
    total = counts.Counts()
    sanitized._tests(sanitized.CHANGED if changed else sanitized.PROGRAM, total, {}, tmp_path)
    assert (total.failed, len(shell.remembered)) == ((0, 1) if changed else (1, 0))


FUZZER = """#!/bin/sh
[ {crash} = 1 ] && {{ echo "==1==ERROR: AddressSanitizer: heap-buffer-overflow"; exit 77; }}
echo "#2 INITED cov: {cov} ft: 3 corp: 1/1b"
echo "stat::number_of_executed_units: {runs}"
"""


@pytest.mark.parametrize(
    ("crash", "cov", "runs", "said"),
    [(0, 7, 1234, ""), (1, 7, 0, "exit code 77"), (0, 0, 99, "no coverage"), (0, 7, 0, "ran nothing")],
)
def test_fuzzers(runner, tmp_path, monkeypatch, capsys, crash, cov, runs, said):
    _, _, sanitized, counts, shell = runner
    for module in (shell, sanitized):
        monkeypatch.setattr(module, "LOGS", tmp_path)
    monkeypatch.setattr(shell, "ROOT", tmp_path)
    write(tmp_path, "tests/fuzz/fuzz_one", FUZZER.format(crash=crash, cov=cov, runs=runs), 0o755)
    total = counts.Counts()
    sanitized.fuzz(total, {}, tmp_path, 1)
    assert (total.passed, total.failed) == ((0, 1) if said else (1, 0))
    assert said in "".join(total.failures) and ("AddressSanitizer" in capsys.readouterr().out) == bool(crash)


def test_valid_files_to_start_from(runner, tmp_path, monkeypatch):
    _, _, sanitized, counts, shell = runner
    for module in (shell, sanitized):
        monkeypatch.setattr(module, "LOGS", tmp_path)
    write(tmp_path, "tests/fuzz/fuzz_seeds", '#!/bin/sh\nmkdir -p "$1/one" "$1/two"\n', 0o755)
    asked = FUZZER.format(crash=0, cov=1, runs=1) + 'case "$2" in */seeds/one) ;; *) exit 1 ;; esac\n'
    write(tmp_path, "tests/fuzz/fuzz_one", asked, 0o755)
    total = counts.Counts()
    sanitized.fuzz(total, {}, tmp_path, 1)
    assert (total.passed, total.failed) == (1, 0)


def test_no_fuzzer_is_a_failure(runner, tmp_path):
    *_, sanitized, counts, _ = runner
    total = counts.Counts()
    sanitized.fuzz(total, {}, tmp_path, 1)
    assert total.failed == 1


# -- lanes ----------------------------------------------------------------------------------------------


def test_shares_have_every_file_once_and_are_of_like_length(runner, tmp_path):
    from runner import shares

    files = [f.relative_to(ROOT).as_posix() for f in (ROOT / "python/tests").rglob("test_*.py")]
    for count in (1, 2, 4, 7):
        made = shares.of_folder("python/tests", count)
        assert len(made) == count and sorted(f for own in made for f in own) == sorted(files)
        known = shares.known()
        usual = statistics.median(known.values())
        lengths = [sum(known.get(f, usual) for f in own) for own in made]
        assert max(lengths) <= sum(lengths) / count + max(known.values())
    assert set(shares.known()) & set(files)
    longest = max(known, key=known.__getitem__)
    made = shares.of_folder("python/tests", 4, skipped=[longest])
    lengths = [sum(known.get(f, usual) for f in own if f != longest) for own in made]
    assert max(lengths) - min(lengths) <= max(t for f, t in known.items() if f != longest)
    assert sorted(f for own in made for f in own) == sorted(files)
    assert shares.shares(["a", "b", "c", "new"], 2, {"a": 9.0, "b": 1.0, "c": 2.0}) == [
        ["a"],
        ["b", "c", "new"],
    ]
    assert shares.shares(["a"], 3, {}) == [["a"]]


def test_reports_say_what_files_take(runner, tmp_path):
    from runner import shares

    write(tmp_path, "t/test_a.py")
    write(tmp_path, "t/sub/test_b.py")
    cases = [("t.test_a", 1.5), ("t.test_a", 0.25), ("t.sub.test_b.TestClass", 2.0), ("gone.test_c", 9.0)]
    text = "".join(f'<testcase classname="{name}" name="x" time="{time}"/>' for name, time in cases)
    report = write(tmp_path, "pytest-1.xml", f"<testsuites><testsuite>{text}</testsuite></testsuites>")
    assert shares.measured([report], tmp_path) == {"t/sub/test_b.py": 2.0, "t/test_a.py": 1.8}


@pytest.mark.parametrize("processes", [[], ["-n", "8"]])
def test_python_tests_are_lanes_where_pytest_has_one_process(runner, monkeypatch, processes):
    *_, counts, _ = runner
    from runner import pytests, suite

    ran = []
    monkeypatch.setattr(pytests, "workers", lambda: processes)
    monkeypatch.setattr(pytests, "run", lambda name, arguments, extra, total: ran.append((name, arguments)))
    for expression in ("", "some"):
        ran.clear()
        for lane in suite._python(expression, {}):
            lane(counts.Counts())
        whole = bool(processes or expression)
        assert len(ran) == (1 if whole else suite.SHARES)
        assert ran[0][0] == ("pytest" if whole else "pytest-1")
        if whole:
            assert ran[0][1] == ["python/tests", *(["-k", "some"] if expression else [])]


@pytest.mark.parametrize("stops", [False, True])
def test_whoever_ends_takes_what_is_left(runner, stops):
    """Each further stage once, its counts kept, and kept too where the other lane stops."""
    *_, counts, shell = runner
    from runner import suite

    gate, order = threading.Event(), []

    def fast(own):
        own.add_one("fast", passed=True)
        if stops:
            raise shell.Stop("the fast one cannot go on")

    def slow(own):
        assert stops or gate.wait(60)  # until a further stage ran: in the lane that ended
        own.add_one("slow", passed=True)

    def further(name):
        def stage(own):
            order.append(name)
            own.add_one(name, passed=name != "two")
            gate.set()

        return stage

    total = counts.Counts()
    if stops:
        with pytest.raises(shell.Stop, match="cannot go on"):
            suite._lanes(total, [fast, slow], [further("one"), further("two")])
    else:
        suite._lanes(total, [fast, slow], [further("one"), further("two")])
    assert sorted(order) == ["one", "two"]
    assert (total.passed, total.failures) == (3, ["two"])
