"""A Fourier transform of encrypted vectors: a matrix prepared once, with many keys or with two."""

import numpy as np

from crenel import ckks

SIZE = 64
params = ckks.Params(log_n=14, scale_bits=40, depth=1)
context = ckks.Context(params, device="auto")
client = context.keygen()

rows = np.arange(SIZE)
fourier = np.exp(-2j * np.pi * np.outer(rows, rows) / SIZE) / np.sqrt(SIZE)
rng = np.random.default_rng(1)
x = rng.uniform(-1, 1, (2, SIZE))  # two vectors in one ciphertext
encrypted = client.encrypt(x, slots=SIZE)

# A matrix is a sum of diagonals times rotations; baby steps and giant steps need about 2 sqrt(SIZE) of
# them. "minimal" repeats one step of each kind: two keys, more time.
for keys in ("hoisted", "minimal"):
    transform = context.linear_transform(fourier, slots=SIZE, keys=keys)
    server = client.evaluation_keys(rotations=transform.rotations, relinearisation=False)
    result = client.decrypt(transform(context.evaluator(server), encrypted))
    error = np.abs(result - np.fft.fft(x) / np.sqrt(SIZE)).max()
    print(f"{keys}: {len(transform.rotations)} rotation keys, largest error 2^{np.log2(error):.1f}")
    assert error < 2**-15
