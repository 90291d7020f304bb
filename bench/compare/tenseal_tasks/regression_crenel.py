"""Logistic regression: the scores of a batch of encrypted rows."""

import numpy as np

from crenel import ckks

rng = np.random.default_rng(1)
rows, weights, bias = rng.uniform(-1, 1, (40, 30)), rng.uniform(-0.2, 0.2, 30), 0.1
sigmoid = [0.5, 0.197, 0, -0.004]

# begin
client = ckks.Context(ckks.Params(log_n=14, scale_bits=40, depth=4)).keygen()
x = ckks.encrypt(client, rows, "columns")
predict = lambda x: (x @ weights + bias).polynomial(sigmoid)  # noqa: E731
ev = client.context.evaluator(ckks.keys_for(client, predict, x))
scores = client.decrypt(predict(ev(x)))
# end

assert np.abs(scores - np.polynomial.polynomial.polyval(rows @ weights + bias, sigmoid)).max() < 1e-3
