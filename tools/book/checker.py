"""Looks at a built site: links that lead nowhere, and what is loaded from elsewhere.

python tools/book/checker.py [site]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes by which a page makes a browser load something, by element.
LOADS = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "image": ("href", "xlink:href"),
    "img": ("src", "srcset"),
    "input": ("src",),
    "link": ("href",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "track": ("src",),
    "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
}
STATED_ONLY = {
    "canonical",
    "next",
    "prev",
    "alternate",
    "license",
    "author",
}  # rel of links that load nothing
STYLE_URL = re.compile(r"""url\(\s*['"]?([^'")]+)|@import\s+['"]([^'"]+)""")
# The theme loads these from elsewhere where a page asks for them.
ASKS = re.compile(r'class="[^"]*\b(mermaid|giscus)\b|data-md-component="source"')


@dataclass
class Page:
    """What one file of HTML names."""

    names: set[str] = field(default_factory=set)  # its anchors
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.inside = tag
        self.page.names |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and "href" in given:
            self.page.links.append(given["href"])
        for name in LOADS.get(tag, ()):
            if name in given and not (tag == "link" and set(given.get("rel", "").split()) <= STATED_ONLY):
                self.page.loads += [part.split()[0] for part in given[name].split(", ") if part.strip()]
        self.page.loads += styled(given.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self.inside == "style":
            self.page.loads += styled(data)


def styled(text: str) -> list[str]:
    """Addresses in a style sheet."""
    return [first or second for first, second in STYLE_URL.findall(text)]


def read(file: Path) -> Page:
    reader = Reader()
    reader.feed(file.read_text(encoding="utf-8"))
    return reader.page


def elsewhere(address: str) -> bool:
    """Not a file of this site."""
    parts = urlsplit(address)
    return bool(parts.scheme or parts.netloc) and parts.scheme != "data"


def problems(site: Path) -> Iterator[str]:
    """All that is wrong, a line each."""
    pages = {file.resolve(): read(file) for file in sorted(site.rglob("*.html"))}
    for file, page in pages.items():
        where = file.relative_to(site.resolve())
        text = file.read_text(encoding="utf-8")
        if asked := ASKS.search(text):
            yield f"{where}: {asked[0]} makes the theme load from elsewhere"
        if 'class="arithmatex"' in text:
            yield f"{where}: a formula was left as TeX"
        for address in page.loads:
            if elsewhere(address):
                yield f"{where}: loads {address}"
            else:
                yield from missing(address, file, site.resolve(), pages, where)
        for address in page.links:
            if not elsewhere(address):
                yield from missing(address, file, site.resolve(), pages, where)
    for file in sorted(site.rglob("*.css")):
        for address in styled(file.read_text(encoding="utf-8")):
            if elsewhere(address):
                yield f"{file.relative_to(site)}: loads {address}"


def missing(address: str, file: Path, site: Path, pages: dict[Path, Page], where: Path) -> Iterator[str]:
    """A link of `file` to a file or an anchor that is not there."""
    parts = urlsplit(address)
    if parts.scheme == "data" or file.name == "404.html":  # whose addresses are those of a server's root
        return
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file() or site not in target.parents:
        yield f"{where}: {address} leads to no file"
    elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
        yield f"{where}: {address} leads to no heading"


def main() -> int:
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "site")
    found = list(problems(site))
    print(
        "\n".join(found)
        or f"{len(list(site.rglob('*.html')))} pages: links lead somewhere, nothing is loaded from elsewhere"
    )
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
