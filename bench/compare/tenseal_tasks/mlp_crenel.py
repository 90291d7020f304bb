"""A perceptron of two layers with squares between them, on an encrypted vector."""

import numpy as np

from crenel import ckks

rng = np.random.default_rng(1)
image, w1, w2 = rng.uniform(-1, 1, 64), rng.uniform(-0.2, 0.2, (64, 32)), rng.uniform(-0.2, 0.2, (32, 10))
b1, b2 = rng.uniform(-1, 1, 32), rng.uniform(-1, 1, 10)

# begin
client = ckks.Context(ckks.Params(log_n=14, scale_bits=40, depth=4)).keygen()
x = ckks.encrypt(client, image)
network = lambda x: (x @ w1 + b1).square() @ w2 + b2  # noqa: E731
ev = client.context.evaluator(ckks.keys_for(client, network, x))
output = client.decrypt(network(ev(x)))
# end

assert np.abs(output - ((image @ w1 + b1) ** 2 @ w2 + b2)).max() < 1e-3
