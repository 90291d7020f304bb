"""Computing with small messages: a histogram, by comparisons, sums and operators.

The server counts how many of 32 encrypted values of 4 bits fall in each of 16 bins, and learns nothing.
The set toy-lut4 is INSECURE and finishes at once; "lut4-128" is the same for real use.
"""

import time
import warnings

import numpy as np

from crenel import tfhe

warnings.simplefilter("ignore", tfhe.InsecureParametersWarning)
context = tfhe.Context(tfhe.preset("toy-lut4", allow_insecure=True), device="auto")
client = context.keygen()
ev = context.evaluator(client.evaluation_keys())

rng = np.random.default_rng(1)
values = rng.binomial(15, 0.4, 32).astype(np.uint8)
encrypted = client.encrypt(values, bits=4)  # messages: small, with any function a bootstrap away

# One comparison a value and bin, as one batch: (32,) against (16, 1) broadcasts to (16, 32).
start = time.perf_counter()
bins = np.arange(16, dtype=np.uint8).reshape(16, 1)
hits = ev(encrypted) == bins  # encrypted bits
counts = ev.sum(hits, axis=1, dtype=np.uint8)  # integers: counts may exceed 15, the largest message
found = client.decrypt(counts)
print(f"histogram {found} in {time.perf_counter() - start:.2f} s")
assert (found == np.bincount(values, minlength=16)).all()

# Conditions are bits of a comparison: values above 9 are cut off, and added up modulo 16, the space of
# messages.
cut = ev.select(ev(encrypted) > 9, 9, encrypted)
assert (client.decrypt(cut) == np.minimum(values, 9)).all()
assert client.decrypt(ev(cut).sum()) == np.minimum(values, 9).sum() % 16
