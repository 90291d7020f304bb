"""Names that stand in files, as messages and places have them."""

from __future__ import annotations


class Places:
    """Names that are printable, not long, and each there once."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def of(self, name: str) -> str:
        """The name, or that with a number behind it."""
        plain = printable(name) or "unnamed"
        found, number = plain, 0
        while found in self._seen:
            number += 1
            found = f"{plain}_{number}"
        self._seen.add(found)
        return found


def printable(text: object, most: int = 80) -> str:
    """What a file says as it may stand in messages: so many characters at most, none that controls."""
    return "".join(c if c.isprintable() else "?" for c in str(text)[:most])
