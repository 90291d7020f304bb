"""Sorting and ranking encrypted numbers: networks of comparisons by polynomials close to the sign."""

from crenel.workloads.masks import MaskStore
from crenel.workloads.recordings import Recordings
from crenel.workloads.sorting.calls import (
    argsort,
    decrypt_indices,
    encrypt_indexed,
    encrypt_values,
    kth,
    median,
    sort,
    sorting_keys,
    top_k,
)
from crenel.workloads.sorting.clear import Noise
from crenel.workloads.sorting.comparator import Comparator, comparator, comparator_names
from crenel.workloads.sorting.plan import Sorting
from crenel.workloads.sorting.report import Report
from crenel.workloads.sorting.simulate import Trace
from crenel.workloads.sorting.values import EncryptedValues

__all__ = [
    "Comparator",
    "EncryptedValues",
    "MaskStore",
    "Noise",
    "Recordings",
    "Report",
    "Sorting",
    "Trace",
    "argsort",
    "comparator",
    "comparator_names",
    "decrypt_indices",
    "encrypt_indexed",
    "encrypt_values",
    "kth",
    "median",
    "sort",
    "sorting_keys",
    "top_k",
]
