"""Synthesis: reader, sizer and check in seconds; with --long the whole flow against tolerances.toml."""

from __future__ import annotations

import dataclasses
import shutil

import pytest

from fhecore.syn import flow, liberty, report, tools
from fhecore.syn.designs import designs

SMALL = """
library (l) {
 cell (INVx1) { area : 1.5;
  pin (A) { direction : input; capacitance : 0.6; }
  pin (Y) { direction : output; function : "!A";
   timing () { related_pin : "A"; timing_sense : negative_unate;
    cell_rise (t) { index_1 ("1, 2"); index_2 ("3, 4"); values ("1, 2", "3, 4"); }
    rise_transition (t) { index_1 ("1, 2"); index_2 ("3, 4"); values ("5, 6", "7, 8"); }
    cell_fall (t) { index_1 ("1, 2"); index_2 ("3, 4"); values ("9, 10", "11, 12"); }
    fall_transition (t) { index_1 ("1, 2"); index_2 ("3, 4"); values ("13, 14", "15, 16"); }
   } } } }
"""


def test_liberty_reader():
    (cell,) = liberty.cells(SMALL).values()
    assert (cell.name, cell.area, cell.caps, cell.functions) == ("INVx1", 1.5, {"A": 0.6}, {"Y": "!A"})
    assert [(a.pin_edge, a.out_edge) for a in cell.arcs] == [(0, 1), (1, 0)]
    assert cell.arcs[0].delay.values.tolist() == [[9, 10], [11, 12]]
    assert cell.arcs[1].slew.values.tolist() == [[5, 6], [7, 8]]


def test_liberty_reader_refuses_other_text():
    with pytest.raises(liberty.LibertyError, match="no library group"):
        liberty.cells("")


def result(**changes) -> flow.Result:
    base = flow.Result("modmul_pe_cs", "", {}, 1000.0, {}, {}, 0, 500.0, 2.0, "a", "b", [], 1000.0, {}, "n.v")
    return dataclasses.replace(base, **changes)


def test_check_names_every_deviation(tmp_path):
    record = tmp_path / "t.toml"
    record.write_text(
        "[modmul_pe_cs]\narea = 1000\narea_drift = 0.02\n"
        "period = 500\nperiod_drift = 0.02\nleast_ghz = 1.41\n"
    )
    assert report.check([result()], record) == []
    assert len(report.check([result(area=1021.0)], record)) == 1
    assert len(report.check([result(period=480.0)], record)) == 1
    assert len(report.check([result(frequency_ghz=1.40)], record)) == 1
    assert "no record" in report.check([result(design="other")], record)[0]


def test_report_of_the_unit_says_when_the_clock_is_missed():
    parts = [result(), result(design="array_periphery", area=2000.0)]
    assert "unit, um2" not in report.tables(parts)
    for period, verdict in ((800.0, "NOT MET"), (600.0, "met")):
        text = report.tables([*parts, result(design="wrapper_periphery", area=30000.0, period=period)])
        (area,) = (line for line in text.splitlines() if line.startswith("unit, um2"))
        (clock,) = (line for line in text.splitlines() if line.startswith("unit, GHz"))
        assert "160,000.0" in area and clock.endswith(f"{verdict})")
    assert f"{432 * 160000 / 1e6 / 826:.1%}" in text


def test_what_is_not_among_the_designs_of_narrow_words():
    assert {"wrapper_periphery", "lazy_pe"} <= set(designs(16)) - set(designs(15))
    assert set(designs(32)) - set(designs(31)) == {"tensor_pe", "tensor_pe_fhe"}


def test_resize_changes_the_named_cells_only():
    text = "  INVx1_ASAP7_75t_R u1 (\n  INVx1_ASAP7_75t_R \\a[1].b  (\n"
    changed = flow.resize(text, {"u1": "INVx2_ASAP7_75t_R", "a[1].b": "INVx1_ASAP7_75t_R"})
    assert changed == text.replace("INVx1_ASAP7_75t_R u1", "INVx2_ASAP7_75t_R u1")


def test_missing_library_is_skipped_with_instructions(tmp_path, monkeypatch):
    monkeypatch.setenv("CRENEL_ASAP7_LIB", str(tmp_path / "none.lib"))
    with pytest.raises(tools.Skipped, match="asap7sc7p5t_28"):
        tools.find_liberty("step", None)


def test_netlist_is_made_anew_when_anything_behind_it_changes(tmp_path, monkeypatch):
    rtl = tmp_path / "rtl"
    shutil.copytree(tools.RTL, rtl)
    library = tmp_path / "cells.lib"
    found = tools.Tools(library, "sha of cells", tmp_path / "sta", {"pyosys": "1", "opensta": "2"})
    made = []

    def synthesise(design, work, _found):
        made.append(design.name)
        work.mkdir(parents=True, exist_ok=True)
        (work / f"{design.name}.v").write_text("  INVx1_ASAP7_75t_R u1 (\n")

    monkeypatch.setattr(flow, "RTL", rtl)
    monkeypatch.setattr(flow, "synthesise", synthesise)
    monkeypatch.setattr(tools, "find", lambda step, path=None: found)

    def again() -> bool:
        before = len(made)
        _, cells = flow.netlist("modmul_pe_cs", work=tmp_path / "work")
        assert cells == ["INVx1_ASAP7_75t_R"]
        return len(made) > before

    assert again() and not again()
    for file in ("modmul_pe_cs.v", "csa.v", "fhecore_config.vh"):
        (rtl / file).write_text((rtl / file).read_text() + "// changed\n")
        assert again() and not again(), file
    (rtl / "fhecore.v").write_text("// of another design\n")
    assert not again()
    for change in ({"liberty_sha256": "other"}, {"versions": {"pyosys": "3", "opensta": "2"}}):
        found = dataclasses.replace(found, **change)
        assert again() and not again(), change
    (tmp_path / "work" / "w32" / "modmul_pe_cs.v").unlink()
    assert again()


def test_designs_name_files_that_are_there():
    for design in designs().values():
        assert all((tools.RTL / source).is_file() for source in design.sources), design.name
        assert f"{design.top}.v" in design.sources


@pytest.mark.long
@pytest.mark.parametrize("name", list(designs()))
def test_figures_within_tolerance(name, work):
    try:
        found = tools.find(f"synthesis of {name}")
        figures = flow.synthesise(designs()[name], work / "syn" / "w32", found)
    except tools.Skipped as reason:
        pytest.skip(str(reason))
    assert report.check([figures], tools.HERE / "tolerances.toml") == []
