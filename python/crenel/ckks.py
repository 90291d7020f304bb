"""CKKS: approximate arithmetic on encrypted real and complex vectors.

The objects, in the order in which they are made:

`Params`
    what is computed with, checked for security: ``Params(log_n=15, scale_bits=40, depth=8)`` or
    ``preset("boot40")``
`Context`
    parameters on a device
`Client`
    the holder of the secret key, ``context.keygen()``: encrypts and decrypts; what others are to
    see comes from ``client.decrypt_to_share``
`ErrorModel`
    the errors of a circuit, ``f(model.input(1.0))``, from what the client knows
`EvaluationKeys`
    what a server gets, ``client.evaluation_keys(rotations=[1, 2])``: no secret
`Evaluator`
    the operations, ``context.evaluator(keys)``: explicit ones, and ``ev(a) * ev(b) + 1`` where
    levels and scales are handled
`Bootstrapper`
    ``context.bootstrapper(server)``: gives a ciphertext of the last level its levels back
"""

import crenel.pickling  # noqa: F401  (makes Params fit for pickle)
from crenel._crenel import (
    BootstrapLevels,
    BootstrapOptions,
    Bootstrapper,
    BootstrapReport,
    ChebyshevFit,
    Ciphertext,
    Client,
    Context,
    ErrorBound,
    ErrorModel,
    EvaluationKeys,
    Evaluator,
    Graph,
    LinearTransform,
    Operand,
    Params,
    Plaintext,
    PublicKey,
    Share,
    concatenate,
    linear_transform_rotations,
    max_log_pq,
    polynomial_depth,
    preset,
    preset_names,
    sum_slots_rotations,
)
from crenel.errors import (
    CrenelError,
    DeviceError,
    InsecureParametersWarning,
    KeyMissingError,
    OutOfMemoryError,
    ParameterError,
    SerializationError,
    StateError,
    UnsupportedError,
)

chebyshev_fit = Evaluator.chebyshev_fit

__all__ = [
    "BootstrapLevels",
    "BootstrapOptions",
    "BootstrapReport",
    "Bootstrapper",
    "ChebyshevFit",
    "Ciphertext",
    "Client",
    "Context",
    "CrenelError",
    "DeviceError",
    "ErrorBound",
    "ErrorModel",
    "EvaluationKeys",
    "Evaluator",
    "Graph",
    "InsecureParametersWarning",
    "KeyMissingError",
    "LinearTransform",
    "Operand",
    "OutOfMemoryError",
    "ParameterError",
    "Params",
    "Plaintext",
    "PublicKey",
    "SerializationError",
    "Share",
    "StateError",
    "UnsupportedError",
    "chebyshev_fit",
    "concatenate",
    "linear_transform_rotations",
    "max_log_pq",
    "polynomial_depth",
    "preset",
    "preset_names",
    "sum_slots_rotations",
]
