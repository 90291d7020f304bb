"""Tables and figures of four papers beside this library's: a registry, their numbers, ours from records.

``crenel reproduce`` is the way in. The papers' numbers are data (``papers/``); ours are read from records of
measurements and never typed. Rendering runs nothing; measuring (``running``) calls commands that are there.
"""

from __future__ import annotations

from crenel.reproduce.outcome import Outcome
from crenel.reproduce.registry import Item, Paper, find, items, paper, papers
from crenel.reproduce.render import outcome, outcomes, stale, write, write_page
from crenel.reproduce.results import Results

__all__ = [
    "Item",
    "Outcome",
    "Paper",
    "Results",
    "find",
    "items",
    "outcome",
    "outcomes",
    "paper",
    "papers",
    "stale",
    "write",
    "write_page",
]
