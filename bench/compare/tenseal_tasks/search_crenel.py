"""Encrypted search: the scores of an encrypted query against a clear and an encrypted database."""

import numpy as np

from crenel import ckks

rng = np.random.default_rng(1)
database, query = rng.uniform(-1, 1, (50, 60)), rng.uniform(-1, 1, 60)

# begin
client = ckks.Context(ckks.Params(log_n=13, scale_bits=40, depth=1)).keygen()
q, d = ckks.encrypt(client, query), ckks.encrypt(client, database)
keys = ckks.keys_for(client, lambda q, d: (database @ q, d @ q), q, d)
ev = client.context.evaluator(keys)
clear = client.decrypt(database @ ev(q))
hidden = client.decrypt(ev(d) @ ev(q))
# end

assert np.abs(clear - database @ query).max() < 1e-3 and np.abs(hidden - database @ query).max() < 1e-3
