"""The one place of the configurations: headers are up to date, values are checked."""

from __future__ import annotations

import dataclasses

import pytest

from fhecore import config


def test_generated_headers_are_up_to_date():
    for path, text in config.outputs().items():
        assert path.read_text() == text, f"{path}: run fhecore/config.py --write"


def test_latency_of_the_papers_unit():
    paper = config.load()["paper"]
    assert paper.latency == 2 * paper.rows + paper.cols + paper.pe_stages - 2 == 44


@pytest.mark.parametrize(
    ("field", "value"),
    [("word_bits", 33), ("word_bits", 5), ("rows", 1), ("pe_stages", 7), ("lanes", 2.0), ("depth", True)],
)
def test_values_out_of_range_are_named(field, value):
    paper = config.load()["paper"]
    with pytest.raises(config.ConfigError, match=rf"{field} = {value!r}: expected an integer"):
        dataclasses.replace(paper, **{field: value})


def test_fragments_fill_whole_beats():
    with pytest.raises(config.ConfigError, match="not a multiple of lanes"):
        dataclasses.replace(config.load()["paper"], rows=3, cols=3)
