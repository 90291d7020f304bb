"""Tumours classified under encryption, on the Wisconsin breast-cancer data of scikit-learn.

A client (a hospital) holds patients' measurements and the secret key; a server holds a trained
logistic regression. They exchange bytes only: parameters, evaluation keys, ciphertexts.
"""

from crenel.workloads.prediction.run import run

__all__ = ["run"]
