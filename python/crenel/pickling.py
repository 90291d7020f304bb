"""What unpickling calls."""

import warnings

from crenel._crenel import Params
from crenel.errors import InsecureParametersWarning


def load_params(data: bytes) -> Params:
    """Parameters that were pickled; insecure ones were warned about when they were made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureParametersWarning)
        return Params.from_bytes(data, allow_insecure=True)
