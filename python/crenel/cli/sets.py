"""Parameter sets by their names, toy ones too: to look at, or for operations that are counted."""

from __future__ import annotations

import warnings

from crenel import ckks, tfhe


def ckks_set(name: str) -> ckks.Params:
    """Raises ParameterError for an unknown name. Insecure ones need no permission: what shows one says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ckks.InsecureParametersWarning)
        return ckks.preset(name, allow_insecure=True)


def tfhe_set(name: str) -> tfhe.Params | None:
    """The set of TFHE of this name, in letters of either size; None: there is none."""
    known = {n.lower(): n for n in tfhe.preset_names()}
    return tfhe.preset(known[name.lower()], allow_insecure=True) if name.lower() in known else None
