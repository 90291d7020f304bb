"""Gates on encrypted bits: many sums of 4-bit numbers at once, by a ripple-carry adder.

Every gate is a bootstrap, so circuits may be as deep as they like. One call works on a whole array: here on
one bit of all pairs of numbers.
"""

import numpy as np

from crenel import tfhe

BITS = 4
context = tfhe.Context(tfhe.preset("bool128"), device="auto")
client = context.keygen()
ev = context.evaluator(client.evaluation_keys())

rng = np.random.default_rng(1)
x, y = rng.integers(0, 2**BITS, (2, 8))
places = np.arange(BITS)[:, None]
a = client.encrypt((x >> places & 1).astype(bool))  # shape (4, 8), a row for each place
b = client.encrypt((y >> places & 1).astype(bool))

# The halves of all places in two calls; then the carry, place by place.
either, both = ev.xor(a, b), ev.and_(a, b)
digits, carry = [either[0]], both[0]
for i in range(1, BITS):
    digits.append(ev.xor(either[i], carry))
    carry = ev.or_(both[i], ev.and_(either[i], carry))
digits.append(carry)

total = sum((client.decrypt(d).astype(int) << i for i, d in enumerate(digits)), np.zeros(8, int))
print(*(f"{p} + {q} = {s}" for p, q, s in zip(x, y, total, strict=True)), sep=", ")
print(f"a gate fails with probability 2^{context.params.p_fail_log2:.0f}")
assert (total == x + y).all()
