"""The service: holds the model, sees ciphertexts and public keys only, and nothing that opens them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np

from crenel import ckks
from crenel.workloads.prediction import layout

Step = Callable[[str], AbstractContextManager[None]]
DEPTH = 4  # one product with the weights, three levels for the polynomial of degree 7


class PredictionServer:
    """Inner products and a polynomial sigmoid on encrypted patients. Bytes in, bytes out."""

    def __init__(
        self,
        weights: np.ndarray,
        bias: float,
        coefficients: np.ndarray,
        device: str,
        allow_insecure: bool = False,
    ) -> None:
        self._weights = weights
        self._bias = bias
        self._coefficients = coefficients
        self._device = device
        self._allow_insecure = allow_insecure

    def connect(self, params: bytes, evaluation_keys: bytes) -> None:
        """What a client sends once."""
        checked = ckks.Params.from_bytes(params, allow_insecure=self._allow_insecure)
        self._context = ckks.Context(checked, device=self._device)
        keys = self._context.evaluation_keys_from_bytes(evaluation_keys)
        self._evaluator = self._context.evaluator(keys)

    @property
    def device(self) -> str:
        info = self._context.device
        return f"{info.name} ({info.description})"

    def predict(self, request: bytes, step: Step) -> bytes:
        """Encrypted features to encrypted probabilities of malignancy."""
        slots = self._context.params.slots
        ev = self._evaluator
        with step("server: read the ciphertext"):
            x = ev(self._context.ciphertext_from_bytes(request))
        with step("server: multiply with the weights"):
            weights = np.zeros(layout.FEATURES)
            weights[: len(self._weights)] = self._weights
            products = x * np.repeat(weights, layout.row_length(slots))
        with step("server: add up the features (hoisted)"):
            sums = products.rotate_sum(layout.baby_steps(slots))
            logits = sums.rotate_sum(layout.giant_steps(slots)) + self._bias
        with step("server: sigmoid of degree 7"):
            probabilities = logits.polynomial(self._coefficients, basis="chebyshev")
        with step("server: write the reply"):
            return probabilities.to_bytes()
