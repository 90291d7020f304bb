"""A matrix times an encrypted vector: diagonals and hoisted rotations."""

from functools import reduce
from operator import add

import numpy as np

from crenel import ckks

SIZE = 16
params = ckks.Params(log_n=14, scale_bits=40, depth=1)
context = ckks.Context(params, device="auto")
client = context.keygen()
keys = client.evaluation_keys(rotations=range(1, SIZE), relinearisation=False)
ev = context.evaluator(keys)

rng = np.random.default_rng(1)
matrix, x = rng.normal(size=(SIZE, SIZE)), rng.normal(size=SIZE)
encrypted = ev(client.encrypt(x, slots=SIZE))  # 16 slots, repeated through the ciphertext

# Row i of A x is the sum over k of A[i, i + k] x[i + k]: diagonal k times x rotated by k.
rows = np.arange(SIZE)
rotated = encrypted.rotate_many(range(SIZE))  # one decomposition for all rotations
product = reduce(add, (r * matrix[rows, (rows + k) % SIZE] for k, r in enumerate(rotated)))

error = np.abs(client.decrypt(product) - matrix @ x).max()
print(f"{SIZE} x {SIZE} matrix times encrypted vector: largest error 2^{np.log2(error):.1f}")
assert error < 2**-15
