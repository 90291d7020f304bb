"""A function that is not a polynomial: fit one to it on an interval, evaluate that."""

import numpy as np

from crenel import ckks

INTERVAL, DEGREE = (-4.0, 4.0), 15


def gelu(t):
    return 0.5 * t * (1 + np.tanh(np.sqrt(2 / np.pi) * (t + 0.044715 * t**3)))


# Degree 15 takes 4 levels; an interval other than [-1, 1] takes one more to map it there.
params = ckks.Params(log_n=14, scale_bits=40, depth=ckks.polynomial_depth(DEGREE) + 1)
context = ckks.Context(params, device="auto")
client = context.keygen()
ev = context.evaluator(client.evaluation_keys())

x = np.linspace(*INTERVAL, params.slots)
coefficients = ckks.chebyshev_fit(gelu, DEGREE, INTERVAL)
y = client.decrypt(ev.polynomial(client.encrypt(x), coefficients, basis="chebyshev", interval=INTERVAL))

clear = np.polynomial.Chebyshev(coefficients, domain=INTERVAL)(x)
print(f"error of degree {DEGREE}: 2^{np.log2(np.abs(clear - gelu(x)).max()):.1f}")
print(f"error of encryption: 2^{np.log2(np.abs(y - clear).max()):.1f}")
assert np.abs(y - clear).max() < 2**-15
