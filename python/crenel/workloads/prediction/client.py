"""The hospital: holds the patients' data and the secret key."""

from __future__ import annotations

import numpy as np

from crenel import ckks
from crenel.workloads.prediction import layout


class HospitalClient:
    """Encrypts features, decrypts probabilities. What leaves it is bytes."""

    def __init__(self, params: ckks.Params, device: str) -> None:
        self._context = ckks.Context(params, device=device)
        self._client = self._context.keygen()

    @property
    def device(self) -> str:
        return self._context.device.name

    @property
    def capacity(self) -> int:
        """Patients in one ciphertext."""
        return layout.row_length(self._context.params.slots)

    def params_bytes(self) -> bytes:
        return self._context.params.to_bytes()

    def evaluation_key_bytes(self) -> bytes:
        """The keys that the server asked for, and no others."""
        wanted = layout.rotations(self._context.params.slots)
        return self._client.evaluation_keys(rotations=wanted).to_bytes()

    def encrypt(self, features: np.ndarray) -> bytes:
        """Rows are patients; one ciphertext for all of them."""
        patients, count = features.shape
        slots = np.zeros((layout.FEATURES, self.capacity))
        slots[:count, :patients] = features.T
        return self._client.encrypt(slots.ravel()).to_bytes()

    def decrypt(self, reply: bytes, patients: int) -> np.ndarray:
        """One probability a patient, exact: for the hospital that holds the key, and nobody else."""
        return self._client.decrypt(self._context.ciphertext_from_bytes(reply))[:patients]
