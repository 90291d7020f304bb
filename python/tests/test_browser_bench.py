"""What measures the page (bench/workload/chromium.py): scripts, mouse, files and pictures of a tab."""

from __future__ import annotations

import base64
import struct
import sys

import pytest
from browser_world import ROOT, chromium

PAGE = """<canvas id="c" width="80" height="40"></canvas><input id="f" type="file"><script>
globalThis.seen = [];
const tell = (e) => seen.push([e.type, e.offsetX, e.offsetY, e.buttons]);
for (const kind of ["pointerdown", "pointermove", "pointerup"])
  document.querySelector("#c").addEventListener(kind, tell);
setTimeout(() => document.body.append(Object.assign(document.createElement("p"), { id: "late" })), 300);
</script>"""


@pytest.fixture(scope="module")
def tab():
    program = chromium()
    sys.path.insert(0, str(ROOT / "bench" / "workload"))
    try:
        from chromium import launched
    finally:
        sys.path.pop(0)
    with launched(program) as browser:
        assert browser.version.split(".")[0].isdigit()
        page = "data:text/html;base64," + base64.b64encode(PAGE.encode()).decode()
        with browser.tab(page, 300, 200) as made:
            yield made


def test_scripts(tab):
    tab.wait_for("#late", 30)
    assert tab.evaluate("Promise.resolve([6 * 7, null])") == [42, None]
    with pytest.raises(RuntimeError, match="it went wrong"):
        tab.evaluate("Promise.reject(new Error('it went wrong'))")
    with pytest.raises(RuntimeError, match="wasn't found"):
        tab.call("Page.noSuchThing")
    with pytest.raises(TimeoutError, match="#never"):
        tab.wait_for("#never", 0.3)
    with pytest.raises(TimeoutError, match="did not answer"):
        tab.evaluate("new Promise(() => {})", 0.3)
    assert tab.evaluate("1 + 1") == 2  # a late answer is not taken for another's


def test_the_mouse(tab):
    tab.drag("#c", [(0.25, 0.5), (0.75, 0.5)], steps=2)
    seen = tab.evaluate("seen")
    assert [row[0] for row in seen if row[0] != "pointermove"] == ["pointerdown", "pointerup"]
    moved = [row[1:] for row in seen if row[0] == "pointermove" and row[3]]
    assert moved == [[40, 20, 1], [60, 20, 1]]


def test_files_and_pictures(tab, tmp_path):
    file = tmp_path / "numbers.csv"
    file.write_text("1,2\n")
    tab.choose("#f", file)
    assert tab.evaluate("document.querySelector('#f').files[0].text()") == "1,2\n"
    tab.picture(tmp_path / "page.png")
    data = (tmp_path / "page.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">2I", data[16:24]) == (300, 200)
