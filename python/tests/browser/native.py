"""A native client whose randomness a test chose (entropy.c): what bits.mjs makes, too.

Arguments: device, folder.
"""

import sys
import warnings
from pathlib import Path

import numpy as np

from crenel import nn

warnings.simplefilter("ignore")
device, folder = sys.argv[1], Path(sys.argv[2])
spec = nn.ClientSpec.load(folder / "client", allow_insecure=True)
samples = np.frombuffer((folder / "samples").read_bytes()).reshape(-1, *spec.input.shape)
client = spec.keygen(device=device)
(folder / "native-keys").write_bytes(client.evaluation_keys(spec).to_bytes())
(folder / "native-tensor").write_bytes(client.encrypt(samples, spec).to_bytes())
(folder / "native-single").write_bytes(client.encrypt(samples[0], spec).to_bytes())
(folder / "native-secret").write_bytes(client.export_secret_key())
