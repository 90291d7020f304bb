"""Tables that are wider than the page scroll by themselves, with their first column in sight."""

from __future__ import annotations

import re

TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
WIDE = 6  # columns beyond which a table may not fit beside the two navigations
CELL = re.compile(r"<td>(.*?)</td>", re.DOTALL)
CODE = re.compile(r"<code>.*?</code>", re.DOTALL)
LONG = 34  # characters of a cell that is broken into lines


def scrolling(page: str) -> str:
    """Puts wide tables of a page's HTML into boxes that scroll, reachable by the keyboard."""

    def boxed(match: re.Match[str]) -> str:
        head = match[0].partition("</tr>")[0]
        if head.count("<th") <= WIDE:
            return match[0]
        table = CELL.sub(
            lambda cell: f'<td class="long">{cell[1]}</td>' if letters(cell[1]) > LONG else cell[0], match[0]
        )
        return f'<div class="wide" tabindex="0" role="region" aria-label="table, scrolls">{table}</div>'

    return TABLE.sub(boxed, page)


def without_escapes(page: str) -> str:
    r"""Code in cells of a page's HTML, with plain bars for those that Markdown has to escape (`a \| b`)."""

    def plain(match: re.Match[str]) -> str:
        return CODE.sub(lambda code: code[0].replace("\\|", "|"), match[0])

    return TABLE.sub(plain, page)


def letters(cell: str) -> int:
    """What a reader sees of it."""
    return len(re.sub(r"<[^>]*>|&\w+;", "", cell))
