"""What pickling calls."""

import copyreg

from crenel._crenel import Params, TfheParams


def load_params(data: bytes) -> Params:
    """Parameters that were pickled; insecure ones warn here too: another process may have made them."""
    return Params.from_bytes(data, allow_insecure=True)


def load_tfhe_params(data: bytes) -> TfheParams:
    """TFHE parameters that were pickled; a context of weak ones warns, as of any."""
    return TfheParams.from_bytes(data)


copyreg.pickle(Params, lambda params: (load_params, (params.to_bytes(),)))
copyreg.pickle(TfheParams, lambda params: (load_tfhe_params, (params.to_bytes(),)))
