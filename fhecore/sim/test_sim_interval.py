"""Intervals of predictions, pages that show figures, the archive of profiles. No GPU, no CUDA tools."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import re
import tarfile
from pathlib import Path

import pytest

from fhecore.sim import archive, compose, frontier, ingest, interval, pages, params, report, validate
from fhecore.syn.designs import designs


def operation(name, base, measured, with_us=60.0, refused=None):
    return {"name": name, "base_us": base, "with_us": {"16": with_us, "32": with_us, "44": with_us},
            "measured_us": {"graph_us": measured}, "refused": refused}  # fmt: skip


SIX = [
    operation(name, 100 * (1 + error), 100.0)
    for name, error in zip(
        ("hemult_47", "rotate_47", "rescale_47", "hemult_23", "rotate_23", "rescale_23"),
        (-0.05, -0.094, -0.065, -0.072, -0.104, 0.028),
        strict=True,
    )
]


def test_intervals_hold_what_the_model_was_seen_to_err():
    errors = interval.Errors.of(SIX)
    low, high = errors.time(90.0)
    assert (low, high) == (pytest.approx(90 / 1.028), pytest.approx(90 / 0.896))
    for o in SIX:  # each measured time, and the model's own ratio, lie in their intervals
        low, high = errors.time(o["base_us"])
        assert low <= o["measured_us"]["graph_us"] * (1 + 1e-12) and o["measured_us"]["graph_us"] <= high * (
            1 + 1e-12
        )
        ends = errors.speed_up(o["measured_us"]["graph_us"], 60.0)
        assert ends[0] - 1e-9 <= o["base_us"] / 60.0 <= ends[1] + 1e-9
    assert errors.chance == (5, 7)
    assert len(errors.left_out()) == 4 and not {"rotate_23", "rescale_23"} & set(errors.left_out())
    assert errors.within(0.059) == ["hemult_47", "rescale_23"]  # what a mean of kernels would have claimed


def test_chance_is_that_of_exchangeable_errors():
    source, inside = random.Random(5), 0
    for _ in range(20_000):
        *seen, fresh = (source.gauss(0, 1) for _ in range(7))
        inside += min(seen) <= fresh <= max(seen)
    some, of = interval.Errors(dict.fromkeys("abcdef", 0.0)).chance
    assert inside / 20_000 == pytest.approx(some / of, abs=0.02)


def test_refused_operations_count_and_too_few_give_no_interval():
    worse = [*SIX, operation("rotate_11", 140.0, 100.0, refused="the model without the unit is +40.0 % off")]
    assert interval.Errors.of(worse).greatest == pytest.approx(0.4)
    with pytest.raises(interval.NoInterval, match="2 operations measured, expected at least 3"):
        interval.Errors.of(SIX[:2])
    unmeasured = [{**o, "measured_us": None} for o in SIX]
    with pytest.raises(interval.NoInterval, match="0 operations"):
        interval.Errors.of(unmeasured)


def test_no_page_has_the_mean_of_kernels_as_a_band():
    for path in (*pages.REPORTS, *pages.PAGES, pages.ROOT / "README.md", pages.ROOT / "CHANGELOG.md"):
        text = path.read_text()
        assert "±" not in text and "+-" not in text, path


def test_reports_show_errors_and_both_targets():
    h200, a100 = (pages.wanted()[pages.DOC / f"report-{target}.md"] for target in ("h200", "a100"))
    validation = validate.require("h200")
    operations = json.loads((params.DATA / "predictions-h200.json").read_text())["operations"]
    errors = interval.Errors.of(operations)
    for o in operations:
        assert f"{100 * errors.by_name[o['name']]:+.1f} %" in h200
    assert f"{len(errors.left_out())} of {len(operations)} operations lie in the" in h200
    outside = len(operations) - len(errors.within(validation["mean"]))
    assert f"is no interval: {outside} of {len(operations)} operations" in h200
    for text in (h200, a100):
        assert all(f"| {what}, 47 limbs |" in text for _, what in report.SIDES) and "| paper, A100: " in text
    assert "No interval: not measured on this GPU" in a100
    unvalidated = [line for line in a100.splitlines() if line.startswith("| ours: ") and " (" in line]
    assert not [line for line in unvalidated if " to " in line], unvalidated


def test_the_committed_pages_are_what_the_data_render():
    assert not pages.stale(), "run python -m fhecore.sim docs and commit"


def test_unknown_blocks_are_refused():
    with pytest.raises(pages.PageError, match="'nothing': expected one of"):
        pages.filled("<!-- fhecore.sim: nothing -->\n<!-- end -->\n")


# -- the archive --------------------------------------------------------------------------------------------
def collected(path, leave_out=(), noise=0):
    """A tar like collect.py's, with a log and counters that nothing reads."""
    by_pc = {"inst_executed": [[0, 6]], "memory_l1_wavefronts_shared": [[16, 24]],
             "memory_l2_theoretical_sectors_global": [[32, 4]], "memory_l1_unread": [[0, 9]]}  # fmt: skip
    profile = {"launches": [{"function": "_Z4workv", "metrics": {"m": 1.0}, "opcodes": {}, "by_pc": by_pc}]}
    with tarfile.open(path, "w:gz") as tar:
        for name in [*archive.FILES, "build_library.log"]:
            if name in leave_out:
                continue
            text = json.dumps(profile) if name.endswith(".profile.json.gz") else f"content of {name}\n"
            data = text.encode() + random.Random(name).randbytes(noise)
            data = gzip.compress(data) if name.endswith(".gz") else data
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), random.randrange(1 << 30)
            tar.addfile(info, io.BytesIO(data))
    return path


def test_an_archive_has_what_the_readers_open(tmp_path):
    size = archive.pack(collected(tmp_path / "a.tar.gz"), tmp_path / "a.tar.xz")
    assert size == (tmp_path / "a.tar.xz").stat().st_size
    archive.pack(collected(tmp_path / "b.tar.gz"), tmp_path / "b.tar.xz")
    assert (tmp_path / "a.tar.xz").read_bytes() == (tmp_path / "b.tar.xz").read_bytes()
    folder = archive.unpack(tmp_path / "a.tar.xz", tmp_path / "out")
    assert {p.name for p in folder.iterdir()} == set(archive.FILES)
    with gzip.open(folder / "unit.sass.gz", "rt") as file:
        assert file.read() == "content of unit.sass.gz\n"
    with gzip.open(folder / "operations.profile.json.gz") as file:
        (launch,) = json.load(file)["launches"]
    assert set(launch["by_pc"]) == set(archive.COUNTERS) and launch["metrics"] == {"m": 1.0}
    archive.unpack(collected(tmp_path / "c.tar.gz"), tmp_path / "raw")  # collect.py's own is read too
    assert (tmp_path / "raw" / "unit.sass.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_archives_that_lack_a_file_or_are_too_large_are_refused(tmp_path, capsys):
    tar = collected(tmp_path / "a.tar.gz", leave_out=("times.json", "bootstrap.csv.gz"))
    with pytest.raises(archive.ArchiveError, match="lacks times.json, bootstrap.csv.gz"):
        archive.pack(tar, tmp_path / "a.tar.xz")
    with pytest.raises(archive.ArchiveError, match="expected at most 100"):
        archive.pack(collected(tmp_path / "b.tar.gz"), tmp_path / "a.tar.xz", limit=100)
    assert not (tmp_path / "a.tar.xz").exists()
    assert archive.main([str(tar), "--out", str(tmp_path / "a.tar.xz")]) == 1
    assert ingest.main([str(tmp_path / "absent.tar.xz")]) == 1
    assert "no such file" in capsys.readouterr().err


def test_the_committed_archive_is_that_of_the_figures():
    """Or the page says that there is none: figures then stand on data that nobody has any more."""
    missing = f"{archive.COMMITTED.name} is not in the repository"
    assert archive.COMMITTED.exists() != (missing in (pages.DOC / "model.md").read_text())
    if archive.COMMITTED.exists():
        assert archive.COMMITTED.stat().st_size <= archive.LIMIT_BYTES
        session = json.loads((params.DATA / "session.json").read_text())
        assert session["sha256"] == hashlib.sha256(archive.COMMITTED.read_bytes()).hexdigest()


if archive.COMMITTED.exists():

    @pytest.mark.long
    @pytest.mark.parametrize("target", ["h200", "a100"])
    def test_predictions_can_be_computed_again(tmp_path, target):
        folder = archive.unpack(archive.COMMITTED, tmp_path)
        committed = json.loads((params.DATA / f"predictions-{target}.json").read_text())
        assert json.loads(json.dumps(compose.compose(folder, target))) == committed


def test_readers_open_only_what_is_kept():
    """Names of files in the sources of what reads them."""
    text = "".join(
        (Path(archive.__file__).parent / f"{m}.py").read_text()
        for m in ("calibrate", "compose", "ingest", "micro", "validate")
    )
    named = set(re.findall(r'"([\w.-]+\.(?:json|jsonl|csv|txt)(?:\.gz)?)"', text))
    named -= {"session.json", "fft-sweep-boot40.json"}  # of data/ itself
    assert named <= set(archive.FILES) and len(named) > 4, named - set(archive.FILES)


@pytest.mark.parametrize("target", ["h200", "a100"])
def test_figures_of_the_committed_data(tmp_path, target):
    """With intervals as bars, and without any."""
    pytest.importorskip("matplotlib")
    assert report.main(["--target", target, "--out", str(tmp_path)]) == 0
    names = {"validation", f"instructions-{target}", f"latency-{target}", f"intervals-{target}"}
    assert {path.stem for path in tmp_path.glob("*.png")} == names


def test_area_against_speed_is_read_from_the_records(tmp_path):
    """Areas are sums of what records hold; a shape without its netlists names the command."""
    figures = {"modmul_pe_cs": 1000.0, "array_periphery": 500.0}
    results = [{"design": n, "area": a, "frequency_ghz": 2.0} for n, a in figures.items()]
    (tmp_path / "fhecore-x.json").write_text(json.dumps({"kind": frontier.KIND, "results": results}))
    (tmp_path / "fhecore-y.json").write_text(json.dumps({"kind": "another", "results": []}))
    lines = frontier.table(params.DATA, tmp_path).splitlines()
    assert "| 128,500 | 2.00 | 55.5 | 6.7% | 16 | 44 |" in lines[2]
    assert all("not synthesised" in line for line in lines[3:7]) and frontier.COMMAND in lines[-1]
    known = designs()
    assert all(set(shape.netlists) <= set(known) for shape in frontier.SHAPES)
    made = {name for shape in frontier.SHAPES for name in shape.netlists} - set(figures)
    assert made <= set(frontier.COMMAND.split())
