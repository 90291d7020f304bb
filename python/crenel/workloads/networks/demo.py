"""`crenel demo nn`: a network trained here, digits that a server classifies without seeing them."""

from __future__ import annotations

import time
import warnings

import numpy as np
from numpy.typing import NDArray

import crenel
from crenel import ckks, nn
from crenel._crenel import security_text
from crenel.cli.output import size
from crenel.errors import ParameterError, UnsupportedError
from crenel.nn.ops import Reals
from crenel.workloads.checked import seed_of
from crenel.workloads.networks.task import agreement, classes
from crenel.workloads.report import Report

PARAMS = "leveled-n14-s40"
HIDDEN, DEGREE = 32, 15
TRAINING, SAMPLES = 1400, 300  # of 1,797 images; those of them that compile sees
DEVIATIONS = 8.0  # times the model's errors: what a correct run does not exceed
SHADES = " .:-=+*#%@"
GAP = "   "
SIDE = 8


def run(device: str = "auto", images: int = 10, seed: int = 1, params: ckks.Params | None = None) -> int:
    """Returns 0 when the encrypted result agrees with the same program in the clear, else 1.

    device : where the server computes
    images : to be classified, drawn at random from those that training did not see
    seed : of the training and the draw
    params : default `PARAMS`

    Raises ParameterError for more images than there are and a seed below 0, DeviceError, UnsupportedError
    without scikit-learn.
    """
    start = time.perf_counter()
    seed = seed_of(seed)
    crenel.device_info(device)  # refuse at once what cannot be had
    report = Report()
    step = report.step
    pixels, labels = digits()
    chosen = unseen(len(pixels), images, seed)
    wanted = pixels[chosen]
    with step("train a network in the clear"):
        model = trained(pixels[:TRAINING], labels[:TRAINING], seed)
    with step("compile it"):
        program = nn.compile(
            model, pixels[:SAMPLES], params=params or ckks.preset(PARAMS), degree=DEGREE, batch=images,
            device=device,
        )  # fmt: skip
    insecure = program.params.insecure
    client_file, server_file = program.client.to_bytes(), program.to_bytes()

    spec = nn.ClientSpec.from_bytes(client_file, allow_insecure=insecure)
    with step("client: keys"):
        client = spec.keygen("ref" if device == "ref" else "cpu")
        keys = client.evaluation_keys(spec).to_bytes()
    with step("client: encrypt the images"):
        sent = client.encrypt(wanted, spec).to_bytes()

    with step("server: read program and keys"):
        server = nn.Program.from_bytes(server_file, device, allow_insecure=insecure).bind(keys)
    with step("server: compute the network"):
        returned = server.run(server.tensor_from_bytes(sent)).to_bytes()

    with step("client: decrypt"):
        found = client.decrypt(client.tensor_from_bytes(returned), spec)

    clear, noisy = program.simulate(wanted, noise=False), program.simulate(wanted, seed=seed)
    report.line()
    for line in pictures(wanted, sent, classes(found)):
        report.line(line)
    report.facts(
        [
            ("server computes on", server.context.device.name),
            ("parameters", f"{program.params.name}: {security_text(program.params)}"),
            ("the server was sent", f"{size(len(keys))} of keys, {size(len(sent))} of images"),
            ("the client had back", size(len(returned))),
        ]
    )
    return _verdict(report, model(wanted), found, labels[chosen], clear, noisy, start)


def _verdict(
    report: Report, exact: Reals, found: Reals, labels: NDArray[np.int64], clear: Reals, noisy: Reals,
    start: float,
) -> int:  # fmt: skip
    """Says how well what was decrypted agrees with the network, `exact`, and with the program in the clear,
    without and with errors. 0 where it is within `DEVIATIONS`, else 1."""
    error = float(np.abs(found - clear).max())
    bound = DEVIATIONS * float(np.sqrt(np.mean((noisy - clear) ** 2)))
    report.facts(
        [
            ("right", f"{int((classes(found) == labels).sum())} of {len(labels)}"),
            ("same class as float", f"{agreement(found, exact):.0%}"),
            ("error of encryption", f"{error:.2g}, {'within' if error <= bound else 'EXCEEDS'} {bound:.2g}"),
            (
                "error of polynomials",
                f"{float(np.abs(clear - exact).max()):.2g} of outputs up to {np.abs(exact).max():.3g}",
            ),
            ("total time", f"{time.perf_counter() - start:.1f} s"),
        ]
    )
    return 0 if error <= bound else 1


def unseen(count: int, images: int, seed: int) -> NDArray[np.int64]:
    """Places of `images` of `count`, drawn at random from those that training did not see.

    Raises ParameterError for more than there are, or none.
    """
    if not 1 <= images <= count - TRAINING:
        raise ParameterError(f"{images} images, expected 1 to {count - TRAINING}", {"images": images})
    return TRAINING + np.random.default_rng(seed).permutation(count - TRAINING)[:images]


def digits() -> tuple[Reals, NDArray[np.int64]]:
    """Images (1797, 64) within [0, 1], and their digits."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise UnsupportedError("the demo needs scikit-learn: pip install 'crenel[demo]'") from None
    pixels, labels = load_digits(return_X_y=True)
    return np.asarray(pixels / 16.0, dtype=np.float64), np.asarray(labels, dtype=np.int64)


def trained(x: Reals, y: NDArray[np.int64], seed: int) -> nn.Module:
    """64-32-10 with ReLU."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    found = MLPClassifier((HIDDEN,), max_iter=40, random_state=seed % (1 << 32), learning_rate_init=5e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # good enough
        found.fit(x, y)
    (w1, w2), (b1, b2) = found.coefs_, found.intercepts_
    return nn.Sequential(nn.Linear(w1.T, b1), nn.ReLU(), nn.Linear(w2.T, b2))


def pictures(images: Reals, sent: bytes, found: NDArray[np.int64]) -> list[str]:
    """Rows of up to ten images: what the client has, what the server saw of it, what the client learns."""
    numbers = _lowest_bytes(sent)
    step = len(numbers) // len(images)
    seen = [numbers[k * step : k * step + SIDE * SIDE] / 255.0 for k in range(len(images))]
    lines = []
    for start in range(0, len(images), 10):
        part = slice(start, start + 10)
        lines += ["what the client has", *_shaded(list(images[part])), ""]
        lines += ["what the server sees: 64 numbers of each, their lowest bytes", *_shaded(seen[part]), ""]
        lines += ["what the client decrypts", GAP.join(f"{d:^{SIDE}}" for d in found[part]), ""]
    return lines


def _lowest_bytes(sent: bytes) -> NDArray[np.uint8]:
    """Of the numbers of four bytes in the middle of what was sent, behind all headers.

    Residues of primes below 2^31: their highest bytes are smaller than the others, and tell where they begin.
    """
    middle = np.frombuffer(sent, dtype=np.uint8)[len(sent) // 4 : -(len(sent) // 4)]
    words = middle[: len(middle) // 4 * 4].reshape(-1, 4)
    highest = int(words.mean(axis=0).argmin())
    return words[:, (highest + 1) % 4]


def _shaded(images: list[Reals]) -> list[str]:
    """Images of 64 numbers within [0, 1] side by side, as text."""
    shades = [np.minimum((i * len(SHADES)).astype(int), len(SHADES) - 1).reshape(SIDE, SIDE) for i in images]
    return [
        GAP.join("".join(SHADES[v] for v in shade[row]) for shade in shades).rstrip() for row in range(SIDE)
    ]
