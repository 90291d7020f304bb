"""Logistic regression: the scores of a batch of encrypted rows."""

import numpy as np
import tenseal as ts

rng = np.random.default_rng(1)
rows, weights, bias = rng.uniform(-1, 1, (40, 30)), rng.uniform(-0.2, 0.2, 30), 0.1
sigmoid = [0.5, 0.197, 0, -0.004]

# begin
context = ts.context(ts.SCHEME_TYPE.CKKS, 16384, coeff_mod_bit_sizes=[60, 40, 40, 40, 40, 60])
context.global_scale = 2**40
context.generate_galois_keys()
x = [ts.ckks_vector(context, row) for row in rows]
predict = lambda v: (v.dot(weights) + [bias]).polyval(sigmoid)  # noqa: E731
scores = np.array([predict(v).decrypt()[0] for v in x])
# end

assert np.abs(scores - np.polynomial.polynomial.polyval(rows @ weights + bias, sigmoid)).max() < 1e-3
