"""Whole programs on encrypted data: training, prediction, sorting, block ciphers.

A workload is a folder of this package. It computes with what `crenel.ckks` or `crenel.tfhe` has for
everybody, its server's part needs evaluation keys and no secret, and beside it stands the same program in the
clear, against which it is compared. `crenel workload` runs and measures them.

`logistic_regression`, `LogisticRegression`
    training on encrypted examples: docs/guide/train.md
`Sorting`, `sort`, `argsort`, `top_k`, `kth`, `median`
    order encrypted numbers: docs/guide/sort.md
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crenel.workloads.regression import LogisticRegression
    from crenel.workloads.regression import LogisticRegression as logistic_regression
    from crenel.workloads.sorting import (
        EncryptedValues,
        Sorting,
        argsort,
        comparator_names,
        decrypt_indices,
        encrypt_indexed,
        encrypt_values,
        kth,
        median,
        sort,
        sorting_keys,
        top_k,
    )

__all__ = [
    "EncryptedValues",
    "LogisticRegression",
    "Sorting",
    "argsort",
    "comparator_names",
    "decrypt_indices",
    "encrypt_indexed",
    "encrypt_values",
    "kth",
    "logistic_regression",
    "median",
    "sort",
    "sorting_keys",
    "top_k",
]

# Imported at their first use: names that are not their module's own, and the module of all others.
_REGRESSION = {"LogisticRegression": "LogisticRegression", "logistic_regression": "LogisticRegression"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    folder = "regression" if name in _REGRESSION else "sorting"
    found = getattr(import_module(f"crenel.workloads.{folder}"), _REGRESSION.get(name, name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
