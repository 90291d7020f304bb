"""More products than levels: the sign of encrypted numbers, with a bootstrap whenever levels run out.

The set toy-boot40 is INSECURE and finishes at once; "boot40" is the same with N = 2^16, for real use.
"""

import warnings

import numpy as np

from crenel import ckks

ITERATIONS = 20
warnings.simplefilter("ignore", ckks.InsecureParametersWarning)
params = ckks.preset("toy-boot40", allow_insecure=True)
context = ckks.Context(params, device="auto")
client = context.keygen()
options = ckks.BootstrapOptions(message="real", values="centred")
server = client.evaluation_keys(bootstrap=options)

ev = context.evaluator(server)
boot = context.bootstrapper(server, options)
print(boot.describe())

# x -> (3 x - x^3) / 2 takes numbers of [-1, 1] towards their sign, at two levels an iteration. Small
# errors, those of a bootstrap too, die out near -1 and 1.
rng = np.random.default_rng(1)
x = rng.uniform(0.05, 1, params.slots) * rng.choice([-1, 1], params.slots)
c, refreshed = client.encrypt(x), 0
for _ in range(ITERATIONS):
    if c.level < 2:
        c, refreshed = boot(ev.adjust_level(c, boot.levels.input)), refreshed + 1
    c = ev.polynomial(c, [0, 1.5, 0, -0.5])

error = np.abs(client.decrypt(c) - np.sign(x)).max()
print(f"{2 * ITERATIONS} levels of products on {params.normal_top_level}: {refreshed} bootstraps")
print(f"largest error 2^{np.log2(error):.1f}")
assert refreshed > 0 and error < 2**-20
