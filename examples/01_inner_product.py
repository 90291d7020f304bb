"""The inner product of two encrypted vectors: multiply, rescale, add up the slots by rotations."""

import numpy as np

from crenel import ckks

params = ckks.Params(log_n=14, scale_bits=40, depth=2)
context = ckks.Context(params, device="auto")
client = context.keygen()
server = context.evaluator(client.evaluation_keys(rotations=[1, 2, 4]))

x = np.arange(1, 9) / 10
y = x[::-1].copy()
total = server.rescale(server.multiply(client.encrypt(x), client.encrypt(y)))
for step in (4, 2, 1):
    total = server.add(total, server.rotate(total, step))

result, expected = client.decrypt(total)[0], x @ y
print(f"inner product: {result:.9f}, expected {expected:.9f}")
assert abs(result - expected) < 2**-15
