"""Docstrings of the package as Markdown: sections, parameters, examples, and links to classes and errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path

SECTION = re.compile(r"^(Parameters|Returns|Yields|Raises|Attributes)$")
RULE = re.compile(r"^-{3,}$")
ENTRY = re.compile(r"^(``|`)?(?P<names>\*{0,2}\w+(?:\(\))?(?:`?, `?\*{0,2}\w+)*)(``|`)? : (?P<text>.*)$")
TERM = re.compile(r"^`[^`]+`(, `[^`]+`)*$|^\w+Error$|^[A-Z]\w+$")
ROOT = Path(__file__).resolve().parents[1]
DOCS, TREE = ROOT / "docs", ROOT / "python/crenel/errors.py"
PAGE = re.compile(r'(?<!\w)`?docs/([\w/-]+\.md)`?(?:,\s+"([^"]+)")?')
NAMES = re.findall(r"^class (\w+Error)\b", TREE.read_text(encoding="utf-8"), re.MULTILINE)
ERRORS = re.compile(rf"(?<![`\w.])({'|'.join(NAMES)})\b")


def _entry(names: str, text: str) -> str:
    # Two marks: a parameter is no link to a class or function of its name.
    shown = ", ".join(f"``{name.strip('` ')}``" for name in names.split(","))
    return f"- {shown}: {text}" if text else f"- {shown}"


def to_markdown(text: str, links: Mapping[str, str], errors: str = "errors.md") -> str:
    """The docstring with lists in place of its numpydoc sections and definitions.

    links : pages' addresses by class, for names between backquotes; errors : the page of the error tree
    """
    lines = inspect.cleandoc(text).splitlines()
    out: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        following = lines[at + 1] if at + 1 < len(lines) else ""
        if SECTION.match(line) and RULE.match(following):
            out += ["", f"**{line}**", ""]
            at += 2
        elif line.startswith(">>>"):
            out += ["", "```python"]
            while at < len(lines) and lines[at].strip():
                out.append(lines[at])
                at += 1
            out += ["```", ""]
        elif match := ENTRY.match(line):
            at = _item(lines, at, _entry(match["names"], match["text"]), out)
        elif TERM.match(line) and following.startswith("    ") and following.strip():
            at = _item(lines, at, f"- {line}: {following.strip()}", out, skip=2)
        else:
            out.append(line if line.startswith("    ") else _prose(line))
            at += 1
    linked = re.sub(r"(?<!`)`(\w+)`(?!`)", lambda m: _link(m[1], links), "\n".join(out))
    root = f"{errors.removesuffix('errors.md')}../"
    linked = PAGE.sub(lambda m: _page(m[1], m[2], root), linked)
    return ERRORS.sub(lambda m: f"[{m[1]}]({errors}#{m[1].lower()})", linked).strip()


def _item(lines: list[str], at: int, first: str, out: list[str], skip: int = 1) -> int:
    """A list's entry with the indented lines that continue it; the line after them."""
    if out and out[-1].strip() and not out[-1].startswith(("- ", "  ")):
        out.append("")
    out.append(_prose(first))
    at += skip
    while at < len(lines) and lines[at].startswith("    ") and lines[at].strip():
        out.append(f"  {_prose(lines[at].strip())}")
        at += 1
    return at


def _prose(line: str) -> str:
    """Outside code no `<` opens a tag."""
    return "".join(p if i % 2 else p.replace("<", "&lt;") for i, p in enumerate(re.split(r"(`[^`]*`)", line)))


def _page(page: str, section: str | None, root: str) -> str:
    """A page of docs/ as a link, by its title or its section's."""
    headings = re.findall(r"^#+ (.+)$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    if section is None:
        return f"[{headings[0]}]({root}{page})"
    words = " ".join(section.split())
    heading = next(h for h in headings if re.sub(r"[`*]", "", h).startswith(words))
    # As the extension `toc` names headings.
    anchor = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())
    return f"[{headings[0]}, “{words}”]({root}{page}#{anchor})"


def _link(name: str, links: Mapping[str, str]) -> str:
    return f"[`{name}`]({links[name]})" if name in links else f"`{name}`"
