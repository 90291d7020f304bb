"""A perceptron of two layers with squares between them, on an encrypted vector."""

import numpy as np
import tenseal as ts

rng = np.random.default_rng(1)
image, w1, w2 = rng.uniform(-1, 1, 64), rng.uniform(-0.2, 0.2, (64, 32)), rng.uniform(-0.2, 0.2, (32, 10))
b1, b2 = rng.uniform(-1, 1, 32), rng.uniform(-1, 1, 10)

# begin
context = ts.context(ts.SCHEME_TYPE.CKKS, 16384, coeff_mod_bit_sizes=[60, 40, 40, 40, 60])
context.global_scale = 2**40
context.generate_galois_keys()
x = ts.ckks_vector(context, image)
# Encrypted, the inner bias repeats in the slots as the next product wants it; a clear one does not, and the
# output is then wrong by up to 0.2, without an error.
hidden = ts.ckks_vector(context, b1)
network = lambda x: (x @ w1.tolist() + hidden).square() @ w2.tolist() + b2  # noqa: E731
output = np.array(network(x).decrypt())
# end

assert np.abs(output - ((image @ w1 + b1) ** 2 @ w2 + b2)).max() < 1e-3
