"""Programs on encrypted integers: token transfers, search in a text, rows of a table by a condition."""

from crenel.workloads.integers.filter import Answer, Table, select_rows
from crenel.workloads.integers.search import Hits, find
from crenel.workloads.integers.transfer import transfer

__all__ = ["Answer", "Hits", "Table", "find", "select_rows", "transfer"]
