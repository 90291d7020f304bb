"""CKKS and TFHE together: scores of CKKS are compared and graded by tables of TFHE, and used in CKKS again.

A lender scores applicants by a weighted sum of encrypted numbers, approves scores from a threshold on, and
sets the rate by a table of four grades. Polynomials would approximate the steps; the bridge looks them up.
"""

import warnings

import numpy as np

import crenel
from crenel import bridge, ckks, tfhe

warnings.simplefilter("ignore", crenel.InsecureParametersWarning)
SLOTS, THRESHOLD = 256, 0.1
RATES = [9.0, 6.5, 4.0, 2.5]  # by quarter of the range of scores

# Toy sets: quick, and without any security. For use: ckks.preset("boot40") and tfhe.preset("lut4-128").
device = crenel.Device("auto")
context = ckks.Context(ckks.preset("toy-boot40", allow_insecure=True), device=device)
small = tfhe.Context(tfhe.preset("toy-lut4g4", allow_insecure=True), device=device)
plan = bridge.Bridge(context, small, SLOTS)

# ---- the holder of the secrets
client, holder = context.keygen(), small.keygen()
server = client.evaluation_keys(**plan.key_options())
tables, between = holder.evaluation_keys(), bridge.make_keys(client, holder)
rng = np.random.default_rng()
income, debts = rng.uniform(0, 1, (2, SLOTS))
encrypted = [client.encrypt(v, slots=SLOTS, level=plan.level + 1, bound=1.0) for v in (income, debts)]

# ---- the server: no secret
ev = context.evaluator(server)
across = plan.crossing(ev, small.evaluator(tables), between)
score = ev(encrypted[0]) * 0.9 - ev(encrypted[1]) * 0.6
scored = score.ciphertext.with_bound(0.9)  # from -0.6 to 0.9, less than operations can tell
approved = across.compare(scored, THRESHOLD, bound=1.0)
rate = across.lut(scored, lambda x: RATES[int(np.clip((x + 1) * 2, 0, 3))], low=-1.0, step=1 / 8)
offer = (ev(approved) * ev(rate)).ciphertext

# ---- the holder again
found, clear = client.decrypt(offer), 0.9 * income - 0.6 * debts
nearest = np.clip(np.round((clear + 1) * 8), 0, 15) / 8 - 1
expected = np.where(clear >= THRESHOLD, [RATES[int((x + 1) * 2)] for x in nearest], 0.0)
# Scores that lie between two numbers of the grid, or at the threshold, are decided by noise.
apart = np.abs(np.abs((clear + 1) * 8 % 1 - 0.5)) > 0.3
sure = apart & (np.abs(clear - THRESHOLD) > 10 * plan.resolution(1.0))
print(f"{SLOTS} applicants, {int((found > 1).sum())} approved; {int(sure.sum())} of them far from every edge")
print(f"largest error of their offers: {np.abs(found - expected)[sure].max():.6f} of rates from 2.5 to 9")
assert np.abs(found - expected)[sure].max() < 0.02
