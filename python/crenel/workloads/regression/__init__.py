"""Logistic regression trained on encrypted examples (HELR): `LogisticRegression`."""

from __future__ import annotations

from crenel.workloads.recordings import Recordings
from crenel.workloads.regression.model import LogisticRegression
from crenel.workloads.regression.noise import Noise
from crenel.workloads.regression.sigmoid import HELR, Sigmoid, least_squares
from crenel.workloads.regression.simulate import Trace
from crenel.workloads.regression.state import TrainingState
from crenel.workloads.regression.tables import EncryptedTable
from crenel.workloads.regression.training import EncryptedScores

__all__ = [
    "HELR",
    "EncryptedScores",
    "EncryptedTable",
    "LogisticRegression",
    "Noise",
    "Recordings",
    "Sigmoid",
    "Trace",
    "TrainingState",
    "least_squares",
]
