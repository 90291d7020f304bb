"""The repository stands alone: what comments and pages cite is in it. Exit code 1 names every violation.

A cited page (`docs/theory/tfhe.md`, by its path, or by an end of its path that names one file) exists, and
so does the section named behind it (`docs/theory/tfhe.md, "Gates"`). Keys of the bibliography exist. Paths of
the repository that pages and comments name exist. Nothing cites numbered issues, work sessions or documents
elsewhere. The notation's names occur in the code. Comments of C++ keep to the line length, which clang-format
leaves alone there, and a ruler stands beside its heading.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path

import api_pages
from book import notebooks
from tracked import files

ROOT = Path(__file__).resolve().parents[1]
CXX = (".h", ".cpp", ".cu", ".cuh")
READ = (*CXX, ".py", ".toml", ".v", ".md", ".sh", ".cmake", ".txt", ".yml", ".json")
COLUMNS = 100

PAGE = re.compile(r"(?<![\w./-])((?:\.{1,2}/)*[\w-]+(?:/[\w.-]+)*\.md)\b(?:`?,?\s+\"([^\"]+)\")?")
RECORD = re.compile(r"docs/design/(\d{4})(?![\w-])")
FOLDERS = "bench|cmake|dev|docs|examples|fhecore|include|params|python|requirements|src|tests|tools"
NAMED = re.compile(rf"`((?:{FOLDERS})/[\w./-]*[\w-])[/`]")
FILE = re.compile(
    rf"(?<![\w./*<-])((?:{FOLDERS})/[\w./-]*\w\.(?:h|cpp|cu|cuh|py|json|toml|sh|v|bib))\b(?![*\w])"
)
# All capitals and two digits of a year, as BMTH21; names with a year (Harvey14) are told apart in pages only.
KEY = re.compile(r"\b([A-Z]{2,}[A-Za-z]*(?:7[3-9]|[89]\d|[01]\d|2[0-6])[a-z]?)\b")
NAME_KEY = re.compile(r"\b([A-Z][a-z]{3,}(?:7[3-9]|[89]\d|[01]\d|2[0-6]))\b")
NO_KEYS = re.compile(r"(?:FP|BF|INT|TF|PE|AOI|OAI|AO|OA)\d\d")
FORBIDDEN = {
    re.compile(r"\b[Ii]ssues? #?[1-9]\d*\b"): "numbers of issues",
    re.compile(r"\b[Ss]essions? \d|\b(?:first|second|last|next) session\b"): "work sessions",
    re.compile(r"\bdesign notes\b"): "notes outside the repository",
}
COMMENT_MARK = re.compile(r"\n\s*(?:///?<?|#)\s?")
RULER = re.compile(r"^\s*//\s*[-=]{5,}\s*$")


@cache
def tracked() -> tuple[str, ...]:
    return tuple(files(ROOT))


@cache
def keys() -> frozenset[str]:
    text = (ROOT / "docs" / "bibliography.bib").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^@\w+\{([^,]+),", text, re.MULTILINE))


@cache
def sections(page: str) -> frozenset[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return frozenset(re.sub(r"[`*]", "", h) for h in re.findall(r"^#+ (.+)$", text, re.MULTILINE))


def has_section(page: str, section: str) -> bool:
    """Whether a heading is, or begins with, these words."""
    wanted = re.sub(r"[`*]", "", section)
    return any(heading == wanted or heading.startswith(wanted + " ") for heading in sections(page))


def resolve(cited: str, file: str) -> list[str]:
    """Tracked files that the path can mean: beside the citing file, from the root, or by a unique end."""
    known = set(tracked())
    beside = (ROOT / file).parent / cited
    for candidate in (beside, ROOT / cited):
        name = str(candidate.resolve()).removeprefix(f"{ROOT}/")
        if name in known:
            return [name]
    end = "/" + re.sub(r"^(?:\.{1,2}/)+", "", cited)
    return [name for name in known if name.endswith(end)]


def is_generated(cited: str, file: str) -> bool:
    """Is it a page of the API reference? Those are made with the documentation, where MkDocs checks them."""
    place = str(((ROOT / file).parent / cited).resolve()).removeprefix(f"{ROOT}/")
    return place in {f"docs/{path}" for path in (*api_pages.ADDRESSES, *notebooks.ADDRESSES)}


def check_pages(file: str, text: str) -> list[str]:
    found = []
    flat = COMMENT_MARK.sub(" ", text) if not file.endswith(".md") else re.sub(r"\n", " ", text)
    for cited, section in PAGE.findall(flat):
        if is_generated(cited, file):
            continue
        pages = resolve(cited, file)
        if len(pages) != 1:
            meant = "no file of the repository" if not pages else "more than one: " + ", ".join(sorted(pages))
            found.append(f"{file}: cites {cited}, {meant}")
        elif section and not has_section(pages[0], section):
            found.append(f'{file}: cites {cited}, "{section}", which has no such section')
    for number in RECORD.findall(flat):
        if not any(name.startswith(f"docs/design/{number}-") for name in tracked()):
            found.append(f"{file}: cites docs/design/{number}, which does not exist")
    return found


def check_names(file: str, text: str) -> list[str]:
    """Repository paths: on pages what stands in backticks (folders too), in code files."""
    named = NAMED.findall(text) if file.endswith(".md") else FILE.findall(text)
    return [
        f"{file}: names {path}, which does not exist"
        for path in dict.fromkeys(named)
        if not any(
            name == path or name.endswith("/" + path) or name.startswith((path + "/", path + "."))
            for name in tracked()
        )
    ]


def check_keys(file: str, text: str) -> list[str]:
    cited = {key for key in KEY.findall(text) if not NO_KEYS.fullmatch(key)}
    if file.startswith("docs/theory/"):
        cited |= set(NAME_KEY.findall(text))
    missing = sorted(cited - keys())
    return [f"{file}: cites {key}, which docs/bibliography.bib does not have" for key in missing]


def check_forbidden(file: str, text: str) -> list[str]:
    return [
        f"{file}:{text.count(chr(10), 0, m.start()) + 1}: '{m[0]}': {what}"
        for pattern, what in FORBIDDEN.items()
        for m in pattern.finditer(text)
    ]


def check_comments(file: str, text: str) -> list[str]:
    found = []
    previous = ""
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("//") and len(line) > COLUMNS:
            found.append(f"{file}:{number}: a comment of {len(line)} columns, expected at most {COLUMNS}")
        if RULER.match(line) and previous.lstrip().startswith("//"):
            found.append(f"{file}:{number}: a ruler below its heading, expected on the same line")
        previous = line
    return found


@cache
def identifiers() -> frozenset[str]:
    words: set[str] = set()
    for file in tracked():
        if file.startswith(("include/", "src/", "python/crenel/", "python/src/")) and file.endswith(
            (*CXX, ".py")
        ):
            words.update(re.findall(r"\w+", (ROOT / file).read_text(encoding="utf-8")))
    return frozenset(words)


def check_notation(file: str, text: str) -> list[str]:
    """Names in the second column of the notation's tables, "Name in code", occur in the code."""
    found = []
    for line in text.split("\n"):
        cells = line.split("|")
        for name in re.findall(r"`([\w:/*]+)`", cells[2] if len(cells) > 2 else ""):
            words = re.findall(r"\w+", name)
            if name.endswith("*"):
                known = any(word.startswith(words[0]) for word in identifiers())
            else:
                known = "/" in name or words[-1] in identifiers()
            if not known and len(words[0]) > 2:  # Q, P, s_l are symbols
                found.append(f"{file}: {name} is no name in the code")
    return found


def check(file: str, text: str) -> list[str]:
    """Every violation of one file, given by its path from the root."""
    page = file.endswith(".md")
    found = check_forbidden(file, text)
    if not file.endswith(".json"):
        found += check_pages(file, text)
    if file.endswith(CXX):
        found += check_comments(file, text)
    if file.endswith((*CXX, ".md", ".toml")) and not file.startswith("docs/notes/"):  # notes tell what was
        found += check_names(file, text)
    if file == "docs/notation.md":
        found += check_notation(file, text)
    if page or file.endswith((*CXX, ".py", ".toml")):
        found += check_keys(file, text)
    return found


def main() -> int:
    tests = ("citations", "reference", "typing")
    examples = {"tools/check_citations.py", *(f"python/tests/test_{name}.py" for name in tests)}  # of pages
    errors = []
    for file in tracked():
        if file.endswith(READ) and file not in examples and not file.startswith("fhecore/sim/data/"):
            errors += check(file, (ROOT / file).read_text(encoding="utf-8"))
    for line in errors:
        print("   error:", line)
    print(f"   citations: {len(errors)} errors")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
