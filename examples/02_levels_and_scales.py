"""What a product does to level and scale, by hand and by the convenient form."""

import numpy as np

from crenel import ckks

params = ckks.Params(log_n=14, scale_bits=40, depth=3)
context = ckks.Context(params, device="auto")
client = context.keygen()
ev = context.evaluator(client.evaluation_keys())

x = np.linspace(-1, 1, params.slots)
a = client.encrypt(x)
print(f"fresh             level {a.level}, scale 2^{np.log2(a.scale):.2f}")

# By hand: a product doubles the logarithm of the scale, a rescale brings it back for one level.
square = ev.multiply(a, a)
print(f"multiplied        level {square.level}, scale 2^{np.log2(square.scale):.2f}")
square = ev.rescale(square)
print(f"rescaled          level {square.level}, scale 2^{np.log2(square.scale):.2f}")

# Operands of one call share a level: adding a needs it brought down.
cube_plus = ev.add(ev.multiply_rescale(square, ev.adjust_level(a, square.level)), ev.adjust_level(a, 1))
print(f"x^3 + x           level {cube_plus.level}")

# The same, written as arithmetic.
convenient = ev(a) * a * a + a
print(f"convenient form   level {convenient.level}")

for result in (cube_plus, convenient):
    error = np.abs(client.decrypt(result) - (x**3 + x)).max()
    print(f"largest error 2^{np.log2(error):.1f}")
    assert error < 2**-15
