"""Mathematics as MathML, written into the page when it is built: browsers draw it, nothing is loaded."""

from __future__ import annotations

import html
import re

# What pymdownx.arithmatex leaves of $...$ and $$...$$ (mkdocs.yml: generic).
FORMULA = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)
DELIMITERS = {"span": (r"\(", r"\)", "inline"), "div": (r"\[", r"\]", "block")}
COMMAND = re.compile(r"\\[A-Za-z]+")
# Delimiters of a fixed size, which the converter does not know: MathML's stretch by themselves.
SIZED = re.compile(r"\\(?:bigl|bigr|Bigl|Bigr|biggl|biggr|big|Big)(?![A-Za-z])")
# A sign that follows an opening bracket, a comma or a relation belongs to what comes after it.
SIGN = re.compile(r"(<mo[^>]*>([^<]*)</mo>)<mo>(&#x02212;|&#x0002B;|&#x000B1;|[-+])</mo>")
CLOSING = ("&#x00029;", "&#x0005D;", "&#x0007D;", ")", "]", "}", "|", "&#x0007C;", "!", "&#x02032;", "'")
BAR = re.compile(r"<mo(?P<rest>[^>]*)>(?P<bar>\||&#x0007C;)</mo>")


class FormulaError(ValueError):
    """A formula that does not become MathML; says which."""


def mathml(tex: str, display: str = "inline") -> str:
    """TeX without its delimiters as a <math> element; FormulaError names what is not understood."""
    from latex2mathml.converter import convert

    try:
        found = convert(SIZED.sub("", tex), display=display)
    except Exception as error:  # the converter has several, and raises IndexError where braces are open
        raise FormulaError(f"{tex!r}: {type(error).__name__}: {error}") from None
    left = COMMAND.findall(html.unescape(re.sub(r"<[^>]*>", " ", found)))
    if left:
        raise FormulaError(f"{tex!r}: {', '.join(sorted(set(left)))} came through as text")
    source = html.escape(tex.strip(), quote=True)
    return spaced(found).replace("<math ", f'<math alttext="{source}" ', 1)


def spaced(element: str) -> str:
    """Signs and bars with the form that says where space goes: browsers see their place in the row only."""

    def sign(match: re.Match[str]) -> str:
        form = "" if match[2] in CLOSING else ' form="prefix"'
        return f"{match[1]}<mo{form}>{match[3]}</mo>"

    bars = 0

    def bar(match: re.Match[str]) -> str:
        nonlocal bars
        bars += 1
        if "form=" in match["rest"]:
            return match[0]
        return f'<mo{match["rest"]} form="{"prefix" if bars % 2 else "postfix"}">{match["bar"]}</mo>'

    return BAR.sub(bar, SIGN.sub(sign, element))


def rendered(page: str, where: str = "") -> str:
    """The HTML of a page with all its formulas drawn."""

    def draw(match: re.Match[str]) -> str:
        left, right, display = DELIMITERS[match[1]]
        tex = html.unescape(match[2]).strip()
        if not (tex.startswith(left) and tex.endswith(right)):
            raise FormulaError(f"{where}: {tex!r} has no delimiters {left} {right}")
        try:
            return mathml(tex[2:-2], display)
        except FormulaError as error:
            raise FormulaError(f"{where}: {error}") from None

    return FORMULA.sub(draw, page)


def plain(page: str) -> str:
    """The same where only text is wanted (titles, tables of contents): TeX without delimiters."""
    return re.sub(r"\\[(\[](.*?)\\[)\]]", lambda m: m[1], page)
