"""The demo from the split to the verdict."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import crenel
from crenel import ckks
from crenel._crenel import security_text
from crenel.cli.output import size
from crenel.errors import ParameterError
from crenel.workloads import plots
from crenel.workloads.prediction import layout, model
from crenel.workloads.prediction.client import HospitalClient
from crenel.workloads.prediction.server import DEPTH, PredictionServer
from crenel.workloads.report import Report

AGREEMENT = 2.0**-15


def run(
    device: str = "auto",
    plot: Path | None = None,
    seed: int = 1,
    patients: int = 256,
    params: ckks.Params | None = None,
) -> int:
    """Returns 0 when the encrypted result agrees with the clear one within 2^-15, else 1."""
    start = time.perf_counter()
    crenel.device_info(device)  # refuse at once what cannot be had
    if plot is not None and not plot.parent.is_dir():
        raise ParameterError(f"--plot: there is no folder {plot.parent}", {"plot": str(plot)})
    report = Report()
    step = report.step

    with step("train in the clear"):
        split = model.load(seed, patients)
        trained = model.train(split)

    with step("client: parameters and secret key"):
        params = params or ckks.Params(log_n=14, scale_bits=40, depth=DEPTH)
        client = HospitalClient(params, "ref" if device == "ref" else "cpu")
    with step("client: evaluation keys"):
        params_bytes, key_bytes = client.params_bytes(), client.evaluation_key_bytes()
    chunks = [split.features[i : i + client.capacity] for i in range(0, patients, client.capacity)]
    with step("client: encrypt the patients"):
        requests = [client.encrypt(chunk) for chunk in chunks]

    server = PredictionServer(
        trained.weights, trained.bias, trained.coefficients, device, allow_insecure=params.insecure
    )
    with step("server: read parameters and keys"):
        server.connect(params_bytes, key_bytes)
    replies = [server.predict(request, step) for request in requests]

    with step("client: decrypt"):
        results = [client.decrypt(reply, len(chunk)) for reply, chunk in zip(replies, chunks, strict=True)]
        encrypted = np.concatenate(results)

    sent = (len(params_bytes), len(key_bytes), sum(map(len, requests)), sum(map(len, replies)))
    if plot is not None:
        with step("plot"):
            plots.draw_probabilities(plot, trained.exact(split.features), encrypted, split.labels)
        report.line(f"plot written to {plot}")
    report.line()
    report.facts([*_device_facts(server, client, device), *_size_facts(params, sent)])
    error = _compare(report, split, trained, encrypted)
    report.facts([("total time", f"{time.perf_counter() - start:.1f} s")])
    return 0 if error <= AGREEMENT else 1


def _device_facts(server: PredictionServer, client: HospitalClient, asked: str) -> list[tuple[str, str]]:
    rows = [("server computes on", server.device), ("client computes on", client.device)]
    reason = crenel.cuda_unavailable_reason()
    if not server.device.startswith("cuda"):
        rows.append(("why not on a GPU", reason if asked == "auto" else f"--device {asked} was asked for"))
    return rows


def _size_facts(params: ckks.Params, sent: tuple[int, int, int, int]) -> list[tuple[str, str]]:
    params_size, keys, request, reply = sent
    count = len(layout.rotations(params.slots))
    return [
        (
            "parameters",
            f"N = 2^{params.log_n}, scale 2^{params.log_scale}, {params.max_level} levels, "
            f"log PQ = {params.log_pq:.0f}, {size(params_size)}",
        ),
        ("security", security_text(params)),
        ("evaluation keys", f"{size(keys)}: relinearisation and {count} rotations"),
        ("encrypted features", size(request)),
        ("encrypted reply", size(reply)),
    ]


def _compare(report: Report, split: model.Split, trained: model.Model, encrypted: np.ndarray) -> float:
    """Accuracies and errors; the error of encryption is against the same polynomial in the clear."""
    clear, exact = trained.approximate(split.features), trained.exact(split.features)
    error = float(np.abs(encrypted - clear).max())
    outside = int((np.abs(trained.logits(split.features)) > trained.bound).sum())

    def accuracy(probabilities: np.ndarray) -> str:
        right = (probabilities > 0.5) == split.labels
        return f"{right.mean():.2%} ({right.sum()} of {len(right)})"

    same = int(((encrypted > 0.5) == (exact > 0.5)).sum())
    verdict = "within" if error <= AGREEMENT else "EXCEEDS"
    report.facts(
        [
            ("accuracy, encrypted", accuracy(encrypted)),
            ("accuracy, clear", f"{accuracy(exact)}; same verdict for {same} patients"),
            ("error of encryption", f"at most {error:.2e} = 2^{np.log2(error):.1f}, {verdict} 2^-15"),
            (
                "error of degree 7",
                f"at most {np.abs(clear - exact).max():.3f} against the exact sigmoid "
                f"on [-{trained.bound:.0f}, {trained.bound:.0f}]; {outside} logits outside",
            ),
        ]
    )
    return error
