"""Computing with small messages: a histogram, comparisons, sums and operators.

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

# One rotation a value tells which of the 16 it is; the counts are integers: they may exceed 15, the largest
# message.
start = time.perf_counter()
found = client.decrypt(ev.histogram(encrypted))
print(f"histogram {found} in {time.perf_counter() - start:.2f} s")
assert (found == np.bincount(values, minlength=16)).all()

# The same bits are there for anything else: (32, 16), one row a value.
hits = ev.one_hot(encrypted)
assert (client.decrypt(hits) == (values[:, None] == np.arange(16))).all()
early = ev.sum(hits[:12], axis=0)  # up to 15 of anything are counted by additions alone
assert (client.decrypt(early) == np.bincount(values[:12], minlength=16)).all()

# Conditions are bits of a comparison: values above 9 are cut off, and added up modulo 16, the space of
# messages.
cut = ev.select(ev(encrypted) > 9, 9, encrypted)
assert (client.decrypt(cut) == np.minimum(values, 9)).all()
assert client.decrypt(ev(cut).sum()) == np.minimum(values, 9).sum() % 16
