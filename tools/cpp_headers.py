"""Declarations of the public C++ headers with the comments above and behind them: enough of the language for
include/crenel as clang-format writes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
INCLUDE = ROOT / "include"
SPACE = re.compile(r"\s+")
NAMESPACE = re.compile(r"(?:inline )?namespace ([\w:]*) ?$")
TEMPLATE = re.compile(r"template <[^{}]*?>\s*(?=class|struct|[\w:\[~])")
TYPE = re.compile(r"(?:class|struct|enum class|enum|union)\b\s*(?:\[\[[^]]*\]\]\s*)?(\w+)")
ACCESS = re.compile(r"(public|protected|private):")
SECTION = re.compile(r"// -- (.*?) ?-*$")
OPERATOR = re.compile(r"\b(operator\s*(?:\(\)|\[\]|[^\s\w(]+|[\w:<>&* ]+))\s*\(")
CODE = re.compile(r" {2,}(?![ *])")  # a line of an example in a comment
REQUIRES = re.compile(r"^requires\s*\((?:[^()]|\([^()]*\))*\)\s*")
NAMED = re.compile(r"(~?\w+)\s*\(")
VALUE = re.compile(r"(\w+)\s*(?:\[[^]]*\]\s*)*(?:=|\{|;|$)")
DEFAULTED = re.compile(r"= (default|delete)$")
ERROR = re.compile(r"CRENEL_DEFINE_ERROR\((\w+)\)")  # a class of core/error.h
INTERNAL = ("detail", "internal")  # namespaces
HOLDERS = re.compile(r"\b(?:State|Data)\b")  # of what public classes hold: declared, not defined, in headers


class HeaderError(ValueError):
    """A header that is not understood."""


@dataclass
class Declaration:
    """A type, a function, a value or an alias."""

    kind: str  # type, enum, function, value, alias, friend
    name: str
    signature: str
    above: str = ""  # comments
    behind: str = ""
    line: int = 0
    section: str = ""  # title of the group that it stands in
    joined: bool = False  # directly below the declaration before it, in one group
    members: list[Declaration] = field(default_factory=list)  # public ones; of an enum its names

    @property
    def comment(self) -> str:
        return " ".join(filter(None, (self.above, self.behind)))

    def housekeeping(self, owner: str) -> bool:
        """Nothing that a reader looks up: copies and moves of its class, what the compiler writes, what takes
        or gives the state behind a class."""
        if self.kind != "function":
            return False
        copied = self.name == owner and re.search(rf"\((?:const {owner}&|{owner}&&)", self.signature)
        silent = self.name.startswith("~") or self.name == "operator=" or DEFAULTED.search(self.signature)
        return bool(copied or silent or HOLDERS.search(self.signature))


@dataclass
class Header:
    path: str
    about: str
    namespaces: list[str]
    declarations: list[Declaration]


def read(file: Path, root: Path = INCLUDE) -> Header:
    """A header. Raises HeaderError where brackets do not close."""
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    top = []
    while len(top) < len(lines) and lines[len(top)].startswith("//"):
        top.append(lines[len(top)].removeprefix("//").strip())
    reader = _Reader(text, str(file.relative_to(root)))
    found = list(reader.scope(0, len(text), public=True, owner=""))
    return Header(reader.path, " ".join(top), reader.namespaces, found)


class _Reader:
    def __init__(self, text: str, path: str) -> None:
        self.text, self.path = text, path
        self.plain = _without_comments(text)  # as long as `text`, so that places are the same
        self.namespaces: list[str] = []

    def line(self, at: int) -> int:
        return self.text.count("\n", 0, at) + 1

    def scope(self, at: int, end: int, public: bool, owner: str) -> Iterator[Declaration]:
        """Declarations between two places, one after the other."""
        comment: list[str] = []
        section, joined, shown = "", False, public
        while True:
            before = at
            while at < end and self.text[at].isspace():
                at += 1
            if self.text.count("\n", before, at) > 1:
                joined = False
            if at >= end:
                return
            stop = self.text.find("\n", at, end)
            stop = end if stop < 0 else stop
            line = self.text[at:stop]
            if line.startswith("///"):
                comment.append(line[3:].removeprefix(" ").rstrip())
                joined = False
                at = stop
                continue
            if line.startswith("//"):
                found = SECTION.match(line)
                section = found[1] if found else f"{section} {line.lstrip('/ ')}".strip() if section else ""
                comment, joined, at = [], False, stop
                continue
            if line.startswith("#"):
                while self.text[stop - 1] == "\\":
                    stop = self.text.find("\n", stop + 1)
                comment, at = [], stop
                continue
            if access := ACCESS.match(line):
                shown, comment, section, joined = access[1] == "public", [], "", False
                at += access.end()
                continue
            brace, close = self._extent(at, end)
            head = (
                SPACE.sub(" ", self.plain[at : close if brace is None else brace]).strip().rstrip(";").strip()
            )
            if found := NAMESPACE.match(head):
                assert brace is not None
                if not found[1].endswith(INTERNAL):
                    self.namespaces.append(found[1])
                    yield from self.scope(brace + 1, close - 1, public=True, owner="")
                comment, at, joined = [], close, False
                continue
            behind, at = self._behind(close)
            made = self._declaration(head, brace, close)
            if made and shown:
                made.line, made.section, made.joined = self.line(brace or close), section, joined
                made.above, made.behind = paragraphs(comment), " ".join(behind).strip()
                yield made
            joined = made is not None
            comment = []

    def _extent(self, at: int, end: int) -> tuple[int | None, int]:
        """Where the body of a declaration begins, if it has one, and where the declaration ends."""
        depth, brace = 0, None
        place = at
        while place < end:
            c = self.plain[place]
            if c in "([{":
                if c == "{" and depth == 0 and brace is None:
                    brace = place
                depth += 1
            elif c in ")]}":
                depth -= 1
                if depth < 0:
                    break
                head = SPACE.sub(" ", self.plain[at : brace or at]).strip()
                if c == "}" and depth == 0 and brace is not None and self._has_body(head):
                    return brace, place + 1
            elif c == ";" and depth == 0:
                return brace, place + 1
            place += 1
        raise HeaderError(f"{self.path}:{self.line(at)}: a declaration that does not end")

    @staticmethod
    def _has_body(head: str) -> bool:
        """Ends with its braces: a namespace or a function; types and values end with a semicolon."""
        if NAMESPACE.match(head) or head.startswith('extern "C"'):
            return True
        plain = TEMPLATE.sub("", head, count=1)
        return TYPE.match(plain) is None and _function_name(plain) is not None

    def _behind(self, at: int) -> tuple[list[str], int]:
        """The comment behind a declaration, `///<`, and those of the lines below that go on."""
        found = []
        while match := re.compile(r"[ \t]*///< ?(.*)|\n[ \t]*///< ?(.*)").match(self.text, at):
            found.append((match[1] if match[1] is not None else match[2]).strip())
            at = match.end()
        return found, at

    def _declaration(self, head: str, brace: int | None, close: int) -> Declaration | None:
        template = TEMPLATE.match(head)
        plain = REQUIRES.sub("", head[template.end() :]) if template else head
        if plain.startswith(("friend ", "static_assert")) or not plain:
            return None
        if error := ERROR.match(plain):
            return Declaration("type", error[1], f"class {error[1]} : public Error")
        if plain.startswith("using "):
            name = plain.removeprefix("using ").partition("=")[0].strip()
            return Declaration("alias", name, head)
        if (named := TYPE.match(plain)) and (brace is not None or "(" not in plain):
            if brace is None:
                return None  # said here, declared elsewhere
            kind = "enum" if plain.startswith("enum") else "type"
            made = Declaration(kind, named[1], head)
            end = self.plain.rindex("}", brace, close)
            if kind == "enum":
                made.members = list(self._names(brace + 1, end))
            else:
                public = plain.startswith(("struct", "union"))
                made.members = list(self.scope(brace + 1, end, public, named[1]))
            return made
        if (name := _function_name(plain)) is not None:
            return Declaration("function", name, _shown(head))
        value = VALUE.search(plain.partition("=")[0].strip())
        if value is None:
            raise HeaderError(f"{self.path}: {head!r}")
        whole = SPACE.sub(" ", self.plain[brace:close]).strip().rstrip(";") if brace is not None else ""
        return Declaration("value", value[1], f"{head} {whole}" if whole else head)

    def _names(self, at: int, end: int) -> Iterator[Declaration]:
        """Of an enum."""
        comment: list[str] = []
        for line in self.text[at:end].splitlines():
            line = line.strip()
            if line.startswith("///"):
                comment.append(line.lstrip("/< ").strip())
                continue
            said, _, behind = line.partition("///<")
            for name in filter(None, (part.strip() for part in said.partition("//")[0].split(","))):
                word = name.partition("=")[0].strip()
                yield Declaration("value", word, name, " ".join(comment), behind.strip())
                comment = []


def paragraphs(lines: list[str]) -> str:
    """A comment as Markdown has it: a line for a paragraph or an item, blocks of code as they are."""
    found: list[str] = []
    code = False
    for line in lines:
        item = bool(found) and found[-1].startswith("* ") and not code
        if (CODE.match(line) and not item) or (code and not line):
            found += [] if code else ["", "```cpp"]
            found.append(line)
            code = True
            continue
        found += ["```", ""] if code else []
        code = False
        text = line.strip()
        if text and text.startswith("* ") != item and not (item and line[0] == " "):
            found += ["", text]
        elif text.startswith("* ") or not text or not found or not found[-1]:
            found.append(text)
        else:
            found[-1] += f" {text}"
    whole = "\n".join([*found, "```"] if code else found).strip()
    return whole.replace("\n\n\n", "\n\n").replace("\n\n```\n\n", "\n```\n\n")


def _without_comments(text: str) -> str:
    """The same length, with spaces for comments and for what strings hold."""

    def blank(match: re.Match[str]) -> str:
        return match[0] if match[0][0] in "\"'" and len(match[0]) < 3 else _blanked(match[0])

    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', blank, text, flags=re.DOTALL)


def _blanked(text: str) -> str:
    if text[0] == '"':
        return text if not set(text) & set("(){}[];") else '"' + " " * (len(text) - 2) + '"'
    return re.sub(r"[^\n]", " ", text)


def _function_name(plain: str) -> str | None:
    """What is called in a declaration; None for a value or a type."""
    if operator := OPERATOR.search(plain):
        return SPACE.sub(" ", operator[1]).strip()
    before = plain.partition(" = ")[0]
    depth = 0
    for place, c in enumerate(before):
        if c == "<":
            depth += 1
        elif c == ">" and before[place - 1] != "-":
            depth -= 1
        elif c == "(" and depth <= 0:
            found = NAMED.search(before, 0, place + 1)
            while found and found.end() != place + 1:
                found = NAMED.search(before, found.end(), place + 1)
            return found[1].strip() if found else None
    return None


def _shown(head: str) -> str:
    """A function without what initialises members."""
    depth = 0
    for place, c in enumerate(head):
        depth += (c == "(") - (c == ")")
        if (
            c == ":"
            and depth == 0
            and head[place - 1 : place] in (" ", ")")
            and head[place + 1 : place + 2] == " "
        ):
            return head[:place].strip()
    return head


def headers(root: Path = INCLUDE) -> list[Header]:
    """All of them, by path."""
    return [read(file, root) for file in sorted((root / "crenel").rglob("*.h"))]


def groups(declarations: list[Declaration]) -> Iterator[list[Declaration]]:
    """As they are written: a comment speaks for the declaration below it and for those that follow at once,
    without an empty line or another comment between."""
    found: list[Declaration] = []
    for each in declarations:
        if found and each.joined and not each.above and each.section == found[0].section:
            found.append(each)
            continue
        if found:
            yield found
        found = [each]
    if found:
        yield found


def silent(declarations: list[Declaration], owner: str = "") -> Iterator[tuple[str, Declaration]]:
    """Functions and types that no comment speaks for, with the class that they are of: not their own, not
    that of their group or section, not that of an overload. Of types, their own alone counts."""
    spoken = {each.name for each in declarations if each.comment}
    for group in groups(declarations):
        for each in group:
            said = bool(each.comment)
            if each.kind == "function":
                said |= bool(group[0].above) or ":" in each.section or each.name in spoken
                said |= each.housekeeping(owner)
            elif each.kind not in ("type", "enum"):
                continue
            if not said:
                yield owner, each
            yield from silent(each.members if each.kind == "type" else [], each.name)
