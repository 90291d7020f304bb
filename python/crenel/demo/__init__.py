"""The main job: tumours classified under encryption, Wisconsin breast-cancer data of scikit-learn.

A client (a hospital) holds patients' measurements and the secret key; a server holds a trained
logistic regression. They exchange bytes only: parameters, evaluation keys, ciphertexts.
"""

from crenel.demo.run import run

__all__ = ["run"]
