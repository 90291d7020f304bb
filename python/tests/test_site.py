"""The site as `./run docs` builds it: every formula is drawn, every link leads somewhere, nothing comes
from elsewhere; and what makes it refuses what it cannot make."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from browser_world import chromium, missing
from needed import needs

import crenel

try:
    from playwright.sync_api import Page, sync_playwright

    NO_BROWSER = ""
except ImportError as error:
    NO_BROWSER = f"{error}: pip install -r requirements/web.txt"

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from check_layers import ALLOWED  # noqa: E402

from book import beside, blocks, checker, layers, navigation, notebooks, peers, reach, tables  # noqa: E402

RESULTS = ROOT / "bench" / "results"
STUB = Path(crenel.__file__).with_name("_crenel.pyi")
needs_stub = pytest.mark.skipif(not STUB.is_file(), reason="this build has no stub (sanitizers)")
# As pymdownx.arithmatex reads them: between dollars without space inside, in one paragraph.
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<!\\)\$(?!\s)(?:\\.|(?!\n\s*\n)[^\\$])+?(?<!\s)\$", re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    needs("docs", "mkdocs", "material", "latex2mathml", "matplotlib")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    settings = {k: v for k, v in os.environ.items() if k != "CRENEL_NOTEBOOKS"}
    settings |= {"NO_MKDOCS_2_WARNING": "1", "CRENEL_STUB": str(STUB)}
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def formulas_of(page: Path) -> int:
    """Formulas of a page of docs/, outside of code."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return len(FORMULA.findall(text))


@needs_stub
def test_the_built_site_stands_by_itself(site):
    assert not list(checker.problems(site))


@needs_stub
def test_every_formula_is_drawn(site):
    drawn = 0
    for page in sorted((ROOT / "docs").rglob("*.md")):
        name = page.relative_to(ROOT / "docs")
        if name.parts[0] == "notes":
            continue
        html = (site / name.with_suffix(".html")).read_text(encoding="utf-8")
        body = html[html.index("<article") : html.index("</article>")]
        count = len(re.findall(r"<math\b", body))
        assert count == formulas_of(page), name
        drawn += count
    assert drawn > 200


@needs_stub
def test_search_and_pictures_are_in_it(site):
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    assert "decrypt_to_share" in index
    pictures = (site / "reference" / "pictures.html").read_text(encoding="utf-8")
    assert pictures.count('<figure class="picture') == sum("picture." in name for name in blocks.BLOCKS) + 1
    first = (site / "index.html").read_text(encoding="utf-8")
    assert "gates a second" in first and "What it reaches" in first


MAIN = (
    "index", "guide/getting-started", "guide/nn", "guide/fhecore", "theory/attention", "theory/bridge",
    "reference/comparison", "reference/pictures", "reference/reproduction",
)  # fmt: skip
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
# What a reader sees of a page: how far it reaches to the right of the window, formulas without room or of the
# colour behind them, and tables that are cut.
SEEN = """() => {
  const light = (colour) => { const [r, g, b] = colour.match(/[\\d.]+/g); return (+r + +g + +b) / 3; };
  const behind = light(getComputedStyle(document.body).backgroundColor);
  const closed = (m) => m.closest("details:not([open])");
  const formulas = [...document.querySelectorAll("article math")].filter((m) => !closed(m));
  return {
    beyond: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    formulas: formulas.length,
    unseen: formulas.filter((m) => {
      const box = m.getBoundingClientRect();
      return box.width < 2 || box.height < 5 || Math.abs(light(getComputedStyle(m).color) - behind) < 80;
    }).map((m) => m.textContent),
    cut: [...document.querySelectorAll("article .wide")].filter((t) => t.scrollWidth > t.clientWidth).length,
    dark: behind < 128,
  };
}"""


@pytest.fixture(scope="module")
def browser():
    if NO_BROWSER:
        missing(NO_BROWSER)
    program = chromium()
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield made
        made.close()


def searched(tab: Page, word: str, narrow: bool) -> int:
    """Results that the page's own search shows, as somebody types."""
    if narrow:
        tab.click("label[for=__search]")
    tab.click("[data-md-component=search-query]")
    tab.keyboard.type(word)
    tab.wait_for_selector(".md-search-result__item a", timeout=60_000)
    return tab.locator(".md-search-result__item").count()


@needs_stub
@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (WIDE, "dark"), (NARROW, "light")])
def test_pages_in_a_browser(site, browser, size, scheme):
    """From the folder, without a server: as wide as the window, formulas seen, search answers, no error."""
    errors: list[str] = []
    tab = browser.new_page(viewport=size, color_scheme=scheme)
    tab.on("pageerror", lambda error: errors.append(str(error)))
    formulas = 0
    for page in MAIN:
        tab.goto((site / f"{page}.html").as_uri())
        seen = tab.evaluate(SEEN)
        assert seen["beyond"] <= 0 and not seen["unseen"], (page, seen)
        assert seen["dark"] == (scheme == "dark")
        assert page != "index" or size is NARROW or seen["cut"] == 0  # what it reaches is seen at once
        formulas += seen["formulas"]
    assert formulas > 50
    tab.goto((site / "index.html").as_uri())
    assert searched(tab, "bootstrapping", size is NARROW) > 3
    assert not errors
    tab.close()


@needs_stub
def test_what_is_looked_for_in_a_browser_is_found(site, browser):
    """A page that is too wide, with a formula that nobody sees."""
    tab = browser.new_page(viewport=NARROW)
    tab.goto((site / "theory" / "bridge.html").as_uri())
    tab.evaluate("() => { document.querySelector('article p').style.width = '900px' }")
    tab.evaluate("() => { document.querySelector('article math').style.color = 'white' }")
    seen = tab.evaluate(SEEN)
    assert seen["beyond"] > 0 and len(seen["unseen"]) == 1
    tab.close()


def test_a_formula_that_is_not_understood_is_an_error():
    needs("docs", "latex2mathml")
    from book import formulas

    assert "<mfrac>" in formulas.mathml(r"\frac{1}{2}")
    assert 'form="prefix"' in formulas.mathml("[-1, 1]") and 'form="prefix"' not in formulas.mathml("a - 1")
    for wrong in (r"\nosuchcommand{x}", r"\frac{1}{"):
        with pytest.raises(formulas.FormulaError, match=re.escape(repr(wrong))):
            formulas.mathml(wrong)
    page = '<p><span class="arithmatex">\\(x < \\nosuchcommand\\)</span></p>'.replace("<  ", "&lt; ")
    with pytest.raises(formulas.FormulaError, match="here: "):
        formulas.rendered(page, "here")


def test_the_checker_finds_what_is_wrong(tmp_path):
    (tmp_path / "b.html").write_text('<h2 id="there">x</h2>')
    right = (
        '<a href="b.html#there">x</a><a href="https://example.org">x</a><img src="data:image/png;base64,AA">'
    )
    (tmp_path / "a.html").write_text(right)
    (tmp_path / "a.css").write_text("a { background: url(data:x) }")
    assert list(checker.problems(tmp_path)) == []
    wrong = {
        '<a href="c.html">x</a>': "leads to no file",
        '<a href="../outside.html">x</a>': "leads to no file",
        '<a href="b.html#nowhere">x</a>': "leads to no heading",
        '<script src="https://cdn.example.org/x.js"></script>': "loads https://cdn",
        '<link rel="stylesheet" href="//fonts.example.org/x.css">': "loads //fonts",
        '<img srcset="https://example.org/a.png 2x">': "loads https://example.org/a.png",
        '<p style="background: url(https://example.org/b.png)">x</p>': "loads https://example.org/b.png",
        "<style>@import 'https://example.org/c.css';</style>": "loads https://example.org/c.css",
        '<pre class="mermaid">x</pre>': "makes the theme load",
        '<span class="arithmatex">\\(x\\)</span>': "left as TeX",
    }
    for html, message in wrong.items():
        (tmp_path / "a.html").write_text(right + html)
        found = list(checker.problems(tmp_path))
        assert len(found) == 1 and message in found[0], (html, found)


def test_marks_name_what_is_there():
    used = set()
    for page in (ROOT / "docs").rglob("*.md"):
        used |= set(blocks.MARK.findall(page.read_text(encoding="utf-8")))
    assert used == set(blocks.BLOCKS)
    with pytest.raises(ValueError, match="here: no block 'nothing'"):
        blocks.filled("<!-- book: nothing -->", "here")


def test_the_flow_of_a_bootstrap_is_that_of_its_account():
    """Stages that follow each other, and bytes that add up to the record's."""
    from book import flow

    found, account = flow.stages(), peers.data(flow.TRAFFIC)
    for one, next_one in itertools.pairwise(found):
        assert one.after == next_one.before
    assert found[0].before < found[-1].after < found[0].after  # levels are regained
    total = account["total"]
    for name, moved in (("streamed_bytes", "streamed"), ("written_bytes", "written"), ("dram_bytes", "dram")):
        assert sum(getattr(s, moved) for s in found) == pytest.approx(total[name])
    assert sum(s.streamed + s.read for s in found) == pytest.approx(total["read_bytes"])


def test_sizes_of_wheels_are_those_of_their_records():
    from book import wheels

    page = wheels.sizes()
    for name in wheels.RECORDS:
        record = peers.data(name)
        for file in (record["sdist"], *record["wheels"]):
            assert f"| `{file['name']}` | {wheels.RECORDS[name]} | {file['bytes']:,} |" in page


def test_the_first_page_says_variant_and_security_of_every_figure():
    lines = reach.reached().strip().splitlines()
    assert lines[0].startswith("| what | reaches | variant | security | on |") and len(lines) >= 8
    for line in lines[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert all(cells) and re.fullmatch(r"\d+ bits", cells[3]), line
    with pytest.raises(ValueError, match="no row of"):
        reach.rows("boot40-h200-boot.json", name="nothing")


def test_the_comparison_marks_where_others_are_faster():
    assert peers.factor(2.0, 1.0) == "2.00" and peers.factor(1.0, 2.0) == "**0.50**"
    assert len(peers.processors().splitlines()) == 10
    bibliography = (ROOT / "docs" / "bibliography.bib").read_text(encoding="utf-8")
    published = json.loads(peers.PUBLISHED.read_text(encoding="utf-8"))
    for rows in (value for value in published.values() if isinstance(value, list)):
        for row in rows:
            assert row.get("source") or f"{{{row['key']}," in bibliography, row
    features = published["features"]
    for row in features["rows"]:
        assert row["sources"] and set(row["has"]) <= set(features["columns"]), row
        for source in row["sources"]:
            assert (ROOT / source).is_file() if "/" in source else f"{{{source}," in bibliography, source


def cells(text, header):
    """Rows of the table with this first column."""
    lines = text[text.index(f"| {header} |") :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_own_bootstraps_are_the_newest_of_each_set():
    """Two commits of one set do not stand side by side, and every row says of which it is."""
    own = [row for row in cells(peers.gpu_bootstraps(), "library") if "Crenel" in row[0]]
    assert len({tuple(row[:2]) for row in own}) == len(own) > 3
    assert all(re.fullmatch(r"[0-9a-f]{7,10}, 2\d{3}-\d\d-\d\d", row[-1]) for row in own)
    for name, provenance, row, _ in peers.own_bootstraps():
        for file in RESULTS.glob("boot[0-9]*-h[12]00-boot*.json"):
            other = json.loads(file.read_text())
            if other["provenance"]["device_description"] != provenance["device_description"]:
                continue
            if "--plain-keys" in other["provenance"]["command"]:
                assert name != file.name
                continue
            same = [r for r in other["results"] if (r["params"], r["keys"], r["batch"]) == (
                row["params"], row["keys"], 1) and r["slots"] == row["slots"] and not r["graph"]]  # fmt: skip
            assert not same or other["provenance"]["date"] <= provenance["date"], (name, file.name)


def test_workloads_stand_beside_the_papers():
    rows = cells(beside.workloads(), "workload")
    whose = {(row[0], row[1]) for row in rows}
    for what in ("HELR, an iteration", "ResNet-20, one image"):
        assert {(what, name) for name in ("Cheddar", "Theodosian", "**Crenel**")} <= whose
    own = [row for row in rows if row[1] == "**Crenel**"]
    assert all(row[6].startswith("`workload-") and (RESULTS / row[6].strip("`")).is_file() for row in own)
    images = [row for row in own if row[0].startswith("ResNet")]
    assert any("relu 15,15,27" in row[2] for row in images)
    assert all(re.search(r"% of \d+ images", row[5]) for row in images)
    assert len({tuple(row[:4]) for row in own}) == len(own)


def test_integers_and_operations_of_others():
    rows = cells(beside.integers(), "what")
    assert {"u64 a * b", "u64 a * b, a second", "Token transfer"} <= {row[0] for row in rows}
    assert all(row[1] for row in rows) and any("eight H100" in row[1] for row in rows)
    text = beside.operations()
    names = [row[0] for row in cells(text, "library")]
    assert {"Phantom", "HEonGPU"} < set(names) and names.count("**Crenel**, 32-bit limbs") == 1
    with_words = [row for row in cells(beside.features(), "library") if not any(row[1:-1])]
    assert not with_words  # a library of which nothing is known is no row


def test_navigation_by_reader():
    def pages(*names):
        return [f"{name}.md" for name in names]

    given = pages("index", "guide/serve", "guide/new", "theory/x", "design/0001-a", "reference/service")
    title = dict.fromkeys(pages("theory/x"), "X")
    rooms = {name: inside for room in navigation.navigation(given, title) for name, inside in room.items()}
    assert rooms["Application engineer"] == pages("guide/serve", "reference/service", "guide/new")
    assert rooms["Cryptographer"] == [{"X": page} for page in title] and list(rooms)[-1] == "Decisions"
    with pytest.raises(ValueError, match="no room"):
        navigation.navigation(pages("strange/a"), {})
    listed = [page for room in navigation.ROOMS.values() for page in room]
    assert len(listed) == len(set(listed))


def test_layers_are_drawn_from_their_rules():
    rank = layers.ranks()
    for layer, below in ALLOWED.items():
        assert all(rank[each] < rank[layer] for each in below)
        reachable, todo = set(), [layer]
        while todo:  # the arrows that are drawn lead to everything that may be included
            direct = layers.direct(todo.pop()) - reachable
            reachable |= direct
            todo += direct
        assert below <= reachable and layers.direct(layer) <= below
    picture = layers.picture()
    assert picture.count("<rect") == len(ALLOWED) and all(f">{layer}</text>" in picture for layer in ALLOWED)


def test_wide_tables_scroll():
    head = "<thead><tr>" + "<th>a</th>" * 7 + "</tr></thead>"
    page = f"<table>{head}<tbody><tr><td>{'long ' * 10}</td><td>x</td></tr></tbody></table>"
    boxed = tables.scrolling(page)
    assert boxed.startswith('<div class="wide" tabindex="0"') and boxed.count('class="long"') == 1
    narrow = page.replace("<th>a</th>" * 7, "<th>a</th>")
    assert tables.scrolling(narrow) == narrow


def test_bars_in_cells_of_code_are_not_escaped():
    page = r"<p><code>\|</code></p><table><tr><td><code>a \| b</code> \|</td></tr></table>"
    read = r"<p><code>\|</code></p><table><tr><td><code>a | b</code> \|</td></tr></table>"
    assert tables.without_escapes(page) == read


def test_notebooks_become_pages(tmp_path):
    for file in notebooks.NOTEBOOKS:
        page = notebooks.page(file)
        assert page.startswith("# ") and "```python\n" in page and file.name in page
    book = json.loads(notebooks.NOTEBOOKS[0].read_text(encoding="utf-8"))
    code = next(cell for cell in book["cells"] if cell["cell_type"] == "code")
    code["outputs"] = [{"output_type": "stream", "text": ["a < b\n"]}, {"data": {"image/png": "QUJD\n"}}]
    copy = tmp_path / "run.ipynb"
    copy.write_text(json.dumps(book))
    page = notebooks.page(notebooks.NOTEBOOKS[0], copy)
    assert '<pre class="outcome">a &lt; b</pre>' in page and "data:image/png;base64,QUJD" in page
