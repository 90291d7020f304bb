"""Exact kinks of encrypted numbers: what an insurer pays of a loss, between a deductible and a limit.

payout = min(max(loss - deductible, 0), limit): policies have deductibles and limits of their own, all of them
encrypted. As polynomials both kinks would be round; the bridge compares by tables of TFHE.
"""

import warnings

import numpy as np

import crenel
from crenel import bridge, ckks, tfhe

warnings.simplefilter("ignore", crenel.InsecureParametersWarning)
POLICIES = 64

# Toy sets: quick, and without any security. For use: ckks.preset("boot40") and tfhe.preset("lut4-128").
device = crenel.Device("auto")
context = ckks.Context(ckks.preset("toy-boot40", allow_insecure=True), device=device)
small = tfhe.Context(tfhe.preset("toy-lut4g4", allow_insecure=True), device=device)
plan = bridge.Bridge(context, small, POLICIES)
cost = plan.describe(bound=1.0)  # before a key is made
print(cost)

# ---- the holder of the secrets
client, holder = context.keygen(), small.keygen()
server = client.evaluation_keys(**plan.key_options())
tables, between = holder.evaluation_keys(), bridge.make_keys(client, holder)
assert between.nbytes == cost.key_bytes and server.nbytes == cost.ckks_key_bytes
rng = np.random.default_rng()
clear = rng.uniform((0, 0, 0.2), (1, 0.4, 0.5), (POLICIES, 3)).T  # losses, deductibles, limits
level = context.params.normal_top_level
losses, deductibles, limits = (client.encrypt(v, slots=POLICIES, level=level) for v in clear)

# ---- the server: no secret
ev = context.evaluator(server)
across = plan.crossing(ev, small.evaluator(tables), between)
excess = across.relu((ev(losses) - ev(deductibles)).ciphertext, bound=1.0)
payout = across.minimum(excess, limits, bound=1.0)

# ---- the holder again: no policy is in doubt, since where noise decides both answers are that near
found, loss = client.decrypt(payout), clear[0] - clear[1]
expected = np.minimum(np.maximum(loss, 0), clear[2])
error = np.abs(found - expected).max()
print(f"{POLICIES} payouts, {int((expected == 0).sum())} of them nothing, largest error {error:.1e}")
assert error < 13.4 * 2 * cost.resolution  # two kinks
