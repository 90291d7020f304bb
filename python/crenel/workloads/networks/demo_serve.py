"""`crenel demo serve`: a service here, a client that has digits classified, and what the service saw."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crenel import ckks, nn
from crenel.cli.output import size
from crenel.errors import UnsupportedError
from crenel.nn.ops import Reals
from crenel.workloads.checked import seed_of
from crenel.workloads.networks.demo import (
    DEGREE,
    DEVIATIONS,
    PARAMS,
    SAMPLES,
    TRAINING,
    digits,
    pictures,
    trained,
    unseen,
)
from crenel.workloads.networks.task import classes
from crenel.workloads.report import Report

if TYPE_CHECKING:
    from crenel.client import JobFacts, KeyFacts, Service
    from crenel.serve import Settings

BATCH = 5


def program(device: str, seed: int, params: ckks.Params | None = None) -> tuple[nn.Program, nn.Module]:
    """The digits program, trained here, and the network in the clear."""
    pixels, labels = digits()
    model = trained(pixels[:TRAINING], labels[:TRAINING], seed)
    chosen = params or ckks.preset(PARAMS)
    made = nn.compile(model, pixels[:SAMPLES], params=chosen, degree=DEGREE, batch=BATCH, device=device)
    return made, model


def run(
    device: str = "cpu",
    images: int = 10,
    seed: int = 1,
    port: int = 0,
    page: Path | None = None,
    stay: bool = False,
    params: ckks.Params | None = None,
) -> int:
    """Returns 0 when the decrypted results agree with the same program in the clear, else 1.

    device : of the service's worker
    images : to be classified, drawn at random from those that training did not see
    port : 0 takes a free one
    page : folder served under ``/page/``, with guests let in
    stay : serve on until Ctrl-C
    params : default `PARAMS`

    Raises ParameterError for more images than there are, DeviceError, UnsupportedError where a package of the
    extras ``serve`` or ``demo`` is missing, or the port is taken.
    """
    try:
        from crenel import client, serve
        from crenel.serve import stopping
    except ImportError as error:
        raise UnsupportedError(
            f"the demo needs more packages ({error}): pip install 'crenel[serve]'"
        ) from None
    start, report = time.perf_counter(), Report()
    step = report.step
    seed = seed_of(seed)
    pixels, labels = digits()
    chosen = unseen(len(pixels), images, seed)
    wanted = pixels[chosen]
    with step("train a network in the clear, and compile it"):
        made, model = program(device, seed, params)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.crn"
        made.save(path)
        insecure = made.params.insecure
        settings = _settings(Path(folder) / "service", page, insecure)
        with serve.running([path], settings, device=device, port=port) as service:
            report.line(f"serving at {service.url}, engine local (one machine, no Ray), SQLite and files")
            with client.connect(service.url, service.token or "") as connected:
                found = _classified(connected, wanted, insecure, report)
            right = int((classes(found) == labels[chosen]).sum())
            agreeing = _agreeing(found, model(wanted))
            report.facts([("right", f"{right} of {images}; {agreeing} as the network in float")])
            within = _judged(made, wanted, found, seed, report)
            report.facts([("total time", f"{time.perf_counter() - start:.1f} s")])
            if page is not None:
                report.line(f"page for browsers: {service.url}/page/")
            if stay:
                report.line("serving until Ctrl-C")
                stopping.wait()
    return 0 if within else 1


def _settings(data: Path, page: Path | None, insecure: bool) -> Settings:
    from crenel import serve

    guests = 100 if page else 0
    return serve.Settings(data=str(data), page=str(page or ""), guests=guests, allow_insecure=insecure)


def _classified(connected: Service, wanted: Reals, insecure: bool, report: Report) -> Reals:
    """What a client gets for its images; tells what it sent and what the service saw of it."""
    with report.step("client: make keys, send them, have them checked"):
        session = connected.open("digits", allow_insecure=insecure, progress=True)
    with report.step("client: encrypt, send, wait, decrypt"):
        found = session.run(wanted, timeout=600, progress=True)
    sent = session.client.encrypt(wanted[:BATCH], session.spec).to_bytes()
    report.line()
    for line in pictures(wanted[:BATCH], sent, classes(found[:BATCH])):
        report.line(line)
    report.facts(_seen(connected.jobs()[::-1], connected.keys()))
    return found


def _judged(made: nn.Program, wanted: Reals, found: Reals, seed: int, report: Report) -> bool:
    """Whether results are those of the same program in the clear, within the errors that it states."""
    clear, noisy = made.simulate(wanted, noise=False), made.simulate(wanted, seed=seed)
    largest = float(np.abs(found - clear).max())
    bound = DEVIATIONS * float(np.sqrt(np.mean((noisy - clear) ** 2)))
    word = "within" if largest <= bound else "EXCEEDS"
    report.facts([("error of encryption", f"{largest:.2g}, {word} {bound:.2g}")])
    return largest <= bound


def _agreeing(found: Reals, exact: Reals) -> int:
    return int((classes(found) == classes(exact)).sum())


def _seen(states: list[JobFacts], held: list[KeyFacts]) -> list[tuple[str, str]]:
    """All that the service knows of this client: sizes, hashes, times."""
    rows = [("the service saw", "")]
    for key in held:
        rows.append(("  keys", f"{size(key['bytes'])}, SHA-256 {key['key'][:16]}..., {key['state']}"))
    for k, job in enumerate(states, 1):
        seconds, result = job["seconds"], job["result"]
        returned = f", {size(result['bytes'])} out" if result else ""
        rows.append((f"  job {k}", f"{job['state']}: {size(job['input']['bytes'])} in{returned}"))
        took = {"wait": seconds["wait"], "keys": seconds["keys"], "run": seconds["run"]}
        parts = ", ".join(f"{name} {part:.2f} s" for name, part in took.items() if part is not None)
        rows.append(("", f"input {job['input']['sha256'][:16]}..., {parts}"))
    rows.append(("  of the digits", "nothing"))
    return rows
