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
    assert paper.latency == 2 * paper.rows + paper.cols + config.LEVELS - 2 == 44


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("word_bits", 33),
        ("word_bits", 5),
        ("rows", 1),
        ("lanes", 2.0),
        ("depth", True),
        ("warp_slots", 1),
    ],
)
def test_values_out_of_range_are_named(field, value):
    paper = config.load()["paper"]
    with pytest.raises(config.ConfigError, match=rf"{field} = {value!r}: expected an integer"):
        dataclasses.replace(paper, **{field: value})


def test_fragments_fill_whole_beats():
    with pytest.raises(config.ConfigError, match="not a multiple of lanes"):
        dataclasses.replace(config.load()["paper"], rows=3, cols=3)


def test_shapes_with_a_wrapper():
    """The formal shape is for element and array only."""
    assert {name: shape.has_wrapper for name, shape in config.load().items()} == {
        "paper": True,
        "small": True,
        "formal": False,
    }


@pytest.mark.parametrize(
    ("field", "value", "needs"), [("word_bits", 15, r"16\.\.32"), ("warp_slots", 12, "a power of two")]
)
def test_what_the_wrapper_cannot_have_is_named(field, value, needs):
    shape = dataclasses.replace(config.load()["paper"], **{field: value})
    with pytest.raises(config.ConfigError, match=rf"{field} = {value}: the wrapper needs {needs}"):
        shape.need_wrapper()
    assert not shape.has_wrapper
    dataclasses.replace(shape, **{field: 16}).need_wrapper()
