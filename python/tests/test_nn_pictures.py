"""Pictures of programs and reports: what stands in them, and that they are drawn for any plan."""

import re
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from conftest import toy
from needed import needs

from crenel import nn
from crenel.errors import UnsupportedError
from crenel.nn import pictures
from crenel.nn.pictures.graph import HEIGHT, WIDTH

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def rng():
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print("seed", seed)
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def program(rng) -> nn.Program:
    """Branches, sums and bootstraps."""

    def dense(outputs: int = 8) -> nn.Linear:
        return nn.Linear(rng.normal(0, 0.3, (outputs, 8)))

    branch = nn.Sequential(dense(), nn.ReLU(), dense())
    model = nn.Sequential(
        *(nn.Sequential(nn.Residual(branch), nn.SiLU()) for _ in range(3)),
        nn.Add(dense(), nn.Sequential(dense(), nn.Square())),
        dense(3),
    )  # fmt: skip
    return nn.compile(model, rng.normal(size=(100, 8)), params=toy("toy-boot40"), degree=15, device="cpu")


def boxes(svg: str) -> list[tuple[float, float]]:
    root = ElementTree.fromstring(svg)
    found = [r for r in root.iter(f"{SVG}rect") if r.get("rx")]
    return [(float(r.get("x")), float(r.get("y"))) for r in found]


@pytest.mark.parametrize("rows", [1, 4, 20, 1000])
def test_a_graph_has_a_box_a_step_and_an_edge_an_operand(program, rows):
    svg = pictures.graph(program, rows)
    places = boxes(svg)
    steps = program.plan.steps
    assert len(places) == 1 + len(steps)
    root = ElementTree.fromstring(svg)
    edges = [
        p for p in root.iter(f"{SVG}path") if p.get("d", "").startswith("M") and " 8 4" not in p.get("d")
    ]
    assert len(edges) == sum(len(set(step.inputs)) for step in steps)
    for k, (x, y) in enumerate(places):  # no box lies on another one
        assert all(abs(x - a) >= WIDTH or abs(y - b) >= HEIGHT for a, b in places[:k])
    width, height = float(root.get("width")), float(root.get("height"))
    assert all(0 <= x <= width - WIDTH and 0 <= y <= height - HEIGHT for x, y in places)
    texts = [t.text for t in root.iter(f"{SVG}text")]
    assert sum("bootstrap" in t for t in texts) == program.demand.operations["bootstraps"] > 0


@pytest.mark.filterwarnings("ignore:Glyph")
def test_names_of_files_are_text(rng, tmp_path):
    """Neither markup, nor formulas, nor what XML cannot have; and a notebook keeps its way to draw."""
    matplotlib = needs("demo", "matplotlib")
    model = nn.Sequential(nn.Linear(rng.normal(size=(3, 3))), nn.Square())
    program = nn.compile(model, rng.normal(size=(50, 3)), params=toy("toy-leveled-n14-s40"), device="cpu")
    for step in program.plan.steps:
        object.__setattr__(program.plan.values[step.out], "origin", "$\\frac$</text>\x0b&\n$_^$")
    before = matplotlib.get_backend()
    matplotlib.use("svg")
    ElementTree.fromstring(pictures.graph(program))
    pictures.levels(program, tmp_path / "levels.png")
    assert matplotlib.get_backend() == "svg"
    matplotlib.use(before)


def test_charts(program, rng, tmp_path, monkeypatch):
    needs("demo", "matplotlib")
    spec = program.client
    client = spec.keygen(device="cpu")
    report = nn.report(program.bind(client.evaluation_keys(spec)), client, rng.normal(size=(1, 8)))
    pictures.levels(program, tmp_path / "levels.svg")
    pictures.errors(report, tmp_path / "errors.png")
    assert (tmp_path / "errors.png").read_bytes().startswith(b"\x89PNG")
    svg = (tmp_path / "levels.svg").read_text()
    assert len(re.findall("<svg", svg)) == 1
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UnsupportedError, match="crenel\\[plot\\]"):
        pictures.levels(program, tmp_path / "none.svg")
    assert not (tmp_path / "none.svg").exists()
