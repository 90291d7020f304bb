"""Encrypted search: the scores of an encrypted query against a clear and an encrypted database."""

import numpy as np
import tenseal as ts

rng = np.random.default_rng(1)
database, query = rng.uniform(-1, 1, (50, 60)), rng.uniform(-1, 1, 60)

# begin
context = ts.context(ts.SCHEME_TYPE.CKKS, 8192, coeff_mod_bit_sizes=[60, 40, 40, 60])
context.global_scale = 2**40
context.generate_galois_keys()
q = ts.ckks_vector(context, query)
d = [ts.ckks_vector(context, row) for row in database]
clear = np.array((q @ database.T.tolist()).decrypt())
hidden = np.array([row.dot(q).decrypt()[0] for row in d])
# end

assert np.abs(clear - database @ query).max() < 1e-3 and np.abs(hidden - database @ query).max() < 1e-3
