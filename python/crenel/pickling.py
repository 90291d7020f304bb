"""What pickling calls."""

import copyreg
import warnings

from crenel._crenel import Params, TfheParams
from crenel.errors import InsecureParametersWarning


def load_params(data: bytes) -> Params:
    """Parameters that were pickled; insecure ones were warned about when they were made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureParametersWarning)
        return Params.from_bytes(data, allow_insecure=True)


def load_tfhe_params(data: bytes) -> TfheParams:
    """TFHE parameters that were pickled; a Context of insecure ones warns."""
    return TfheParams.from_bytes(data, allow_insecure=True)


copyreg.pickle(Params, lambda params: (load_params, (params.to_bytes(),)))
copyreg.pickle(TfheParams, lambda params: (load_tfhe_params, (params.to_bytes(),)))
