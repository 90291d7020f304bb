"""Tables of the comparison page that set whole workloads, integers and features beside others'."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from book.reach import RESULTS, ROOT, Row, device
from report import goals
from report.text import duration, number, table

PAPERS = ROOT / "python" / "crenel" / "reproduce" / "papers"
PUBLISHED = ROOT / "bench" / "published.json"
# The papers' sizes.
HELR = {"batch": 1024, "features": 196, "steps": 32}
SORTED = 1 << 14
SAME_CARDS = ("H100 SXM", "H200 SXM")
SILENT = ""


def made(provenance: Row) -> str:
    """Commit and day of a record."""
    commit = (provenance.get("commit") or "")[:10]
    return f"{commit or 'no commit'}, {provenance.get('date', '')[:10]}"


def printed(paper: str, number_: int) -> list[list[Any]]:
    """Rows of a paper's table, as crenel reproduce has them."""
    items = json.loads((PAPERS / f"{paper}.json").read_text(encoding="utf-8"))["items"]
    return next(i["rows"] for i in items if (i["kind"], i["number"]) == ("table", number_))


def runs(name: str) -> Iterator[tuple[str, Row, Row]]:
    """(file, provenance, row) of a workload on GPUs, right results alone."""
    for path in sorted(RESULTS.glob("workload-*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["provenance"].get("device_description", "").startswith("NVIDIA"):
            for row in found["results"]:
                if row["name"] == name and row.get("correct", True) and not row.get("simulated"):
                    yield path.name, found["provenance"], row


Run = tuple[str, Row, list[Row]]


def newest(name: str, same: Callable[[Row], bool], key: Callable[[Row], tuple[Any, ...]]) -> list[Run]:
    """(file, provenance, rows) of the newest record of each card and key."""
    best: dict[tuple[Any, ...], Run] = {}
    for file, provenance, row in runs(name):
        if same(row):
            place = device(provenance), *key(row)
            if place not in best or provenance["date"] > best[place][1]["date"]:
                best[place] = file, provenance, []
            if best[place][0] == file:
                best[place][2].append(row)
    return [best[place] for place in sorted(best)]


def untimed(rows: list[Row]) -> list[Row]:
    """Runs without times of stages, which cost; else all."""
    return [r for r in rows if not r.get("stages_timed")] or rows


def workloads() -> str:
    """HELR, ResNet-20 and Sort beside what Cheddar and Theodosian print."""
    header = ["workload", "library", "scale or set", "on", "time", "result", "source", "measured"]
    return table(header, [*_helr(), *_resnet(), *_sort()])


def _theirs(what: str, at: int, to_us: float, result: tuple[int, str] | None) -> Iterator[list[str]]:
    """Cheddar's rows of one workload, by scale, and Theodosian's on the cards that we have."""
    for row in printed("cheddar", 6):
        if "H100" in row[0] and row[at] is not None:
            said = f"{row[result[0]]:g} {result[1]}" if result else ""
            cells = [row[0].removesuffix(", H100"), "H100 80GB", duration(to_us * row[at]), said]
            yield [what, "Cheddar", *cells, "[Cheddar], table 6", ""]
    of = {"HELR, an iteration": 3, "ResNet-20, one image": 4}
    for row in printed("theodosian", 2):
        if what in of and row[1] == "Theodosian" and row[0] in SAME_CARDS:
            time = duration(1e3 * row[of[what]])
            yield [what, "Theodosian", "2^40", row[0], time, "", "[Theodosian], table II", ""]


def _ours(what: str, run: Run, variant: str, us: float, result: str) -> list[str]:
    file, provenance, _ = run
    cells = [variant, device(provenance), duration(us), result, f"`{file}`", made(provenance)]
    return [what, "**Crenel**", *cells]


def _helr() -> Iterator[list[str]]:
    what = "HELR, an iteration"
    yield from _theirs(what, 1, 1e3, (2, "%"))
    eager = HELR | {"graph": False, "stages_timed": False}
    same = newest("helr", lambda r: all(r[k] == v for k, v in eager.items()), lambda r: (r["params"],))
    for run in same:
        rows = run[2]
        right = median(100 * r["iterations"][-1]["accuracy"] for r in rows)
        yield _ours(what, run, rows[0]["params"], median(r["latency_us"] for r in rows), f"{right:.1f} %")


def _resnet() -> Iterator[list[str]]:
    """Of each card, set and choice of polynomials the newest; accuracy over the most images of such runs."""
    what = "ResNet-20, one image"
    yield from _theirs(what, 3, 1e6, (4, "%"))
    of = [r for _, _, r in runs("network") if r["network"] == "resnet20" and r.get("accuracy") is not None]

    def key(row: Row) -> tuple[str, str]:
        return row["params"], row["activation"]

    for run in newest("network", lambda r: r["network"] == "resnet20" and r["batch"] == 1, key):
        row = min(run[2], key=lambda r: r["latency_us"])
        most = max((r for r in of if key(r) == key(row)), key=lambda r: r["steps"], default=None)
        said = f"{100 * most['accuracy']:.1f} % of {most['steps']} images" if most else ""
        yield _ours(what, run, f"{row['params']}, {row['activation']}", row["latency_us"], said)


def _sort() -> Iterator[list[str]]:
    what = f"Sort of 2^{SORTED.bit_length() - 1} numbers"
    yield from _theirs(what, 5, 1e6, (6, "bits"))

    def key(row: Row) -> tuple[str, str, int, str]:
        return row["params"], row["variant"], row["radix"], row["comparator"]

    for run in newest("sort", lambda r: r["count"] == SORTED, key):
        rows = untimed(run[2])
        us, bits = 1e6 * median(r["total_s"] for r in rows), median(r["error_bits"] for r in rows)
        variant = f"{rows[0]['params']}, {rows[0]['radix']} ways, {rows[0]['comparator']}"
        yield _ours(what, run, variant, us, f"{bits:.2f} bits")


def integers() -> str:
    """What tfhe-rs says of integers and transfers beside the newest record of each."""
    files = {p.name: json.loads(p.read_text(encoding="utf-8")) for p in sorted(RESULTS.glob("*.json"))}
    files = {name: data for name, data in files.items() if isinstance(data, dict)}
    asked = next(data for data in files.values() if data.get("kind") == "crenel-goals")
    header = ["what", "tfhe-rs, its documentation", "Crenel", "on", "source", "of"]
    body, whole = [], ""
    for goal in (goal for section in asked["sections"] for goal in section["goals"]):
        title = goal["title"]
        title = f"{whole}{title.removeprefix('The same')}" if title.startswith("The same") else title
        whole = whole if goal["title"].startswith("The same") else title
        if goal["suite"] not in ("tfhe", "integers", "integer-workload") or not goal.get("peer"):
            continue
        found = goals.newest(goal, files, asked["device"])
        figure, _, note = goal["peer"].partition(" (")
        theirs = f"{figure} {goal['unit']}" + (f" ({note}" if note else "")
        cells = ["", "", "no record", ""]
        if found:
            least = float(figure.split()[0].replace(",", ""))  # of a range, its first
            faster = found.value >= least if goal.get("higher") else found.value <= least
            value = f"{number(found.value)} {goal['unit']}"
            cells = [value if faster else f"**{value}**", found.device, f"`{found.name}`", found.date[:10]]
        body.append([title, theirs, *cells])
    return table(header, body)


def operations() -> str:
    """Phantom and HEonGPU beside Crenel, operation by operation, at the nearest number of limbs."""
    found = json.loads((PAPERS / "peers.json").read_text(encoding="utf-8"))
    names = ("hmult", "hrot", "hadd", "rescale")
    file = "boot40-h200.json"
    own = json.loads((RESULTS / file).read_text(encoding="utf-8"))
    rows = [r for r in own["results"] if (r.get("timing"), r.get("inputs")) == ("each", "same")]
    rows = [r for r in rows if r["batch"] == 1 and not r["graph"]]
    header = ["library", "limbs", "special primes", "HMult", "HRot", "HAdd", "Rescale", "source"]
    body = []
    for library, limbs, alpha, *times in found["operations"]["rows"]:
        near = min({r["limbs"] for r in rows}, key=lambda n: abs(n - limbs))
        ours = {r["name"]: r for r in rows if r["limbs"] == near}
        cells = [duration(us) for us in times]
        body.append([library, str(limbs), str(alpha), *cells, "measured here, no record of its own"])
        cells = [duration(ours[n]["latency_us"]) for n in names]
        cells += [f"`{file}`, {made(own['provenance'])}"]
        line = ["**Crenel**, 32-bit limbs", str(near), str(ours["hmult"]["alpha"]), *cells]
        body += [] if line in body else [line]
    return f"{table(header, body)}\nOthers: {found['measured_by']}.\n"


def features() -> str:
    """What a source in the repository says that a library has; an empty cell says nothing."""
    found = json.loads(PUBLISHED.read_text(encoding="utf-8"))["features"]
    columns = found["columns"]
    body = []
    for row in found["rows"]:
        cells = [row["has"].get(column, SILENT) for column in columns]
        body.append([row["library"], *cells, "; ".join(sources(row))])
    return table(["library", *columns, "source"], body)


def sources(row: Row) -> list[str]:
    """As the table names them: files of the repository, or keys of the bibliography."""
    return [f"`{Path(s).name}`" if "/" in s else f"[{s}]" for s in row["sources"]]
