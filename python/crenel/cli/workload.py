"""``crenel workload``: programs under encryption, compared with the clear, measured: training, sorting and
networks here, those on integers and bits in workload_integers."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from crenel.cli import workload_integers
from crenel.cli.output import expect_figure, expect_with
from crenel.cli.workload_options import Common, OfNetworks, with_options
from crenel.cli.workload_verdict import finish
from crenel.errors import ParameterError

if TYPE_CHECKING:
    import crenel
    from crenel import ckks
    from crenel.workloads.networks import Task
    from crenel.workloads.report import Report
    from crenel.workloads.session import Session

app = typer.Typer(help="Programs on encrypted data, measured.", no_args_is_help=True)
app.command("transfer")(workload_integers.transfer)
app.command("search")(workload_integers.search)
app.command("filter")(workload_integers.rows)
app.command("aes")(workload_integers.aes)

# Sets that end within a minute on two cores. They are toys, and every output says so.
QUICK = {"helr": "toy-boot40", "sort": "toy-boot40"}
MOST_TOKENS = 1 << 12  # of a sequence: samples of more would fill the memory
ON_GPU = {"helr": "boot35", "sort": "boot40"}

JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the record to a new file.")]
Seed = Annotated[int, typer.Option(help="Of the random weights.", min=0)]
ValuesFile = Annotated[
    Path | None,
    typer.Option("--json", help="Write the record to a new file, with up to 512 of the values in the clear."),
]


@app.command()
@with_options(Common)
def helr(
    common: Common,
    label: Annotated[
        str | None, typer.Option(help="Of a CSV file, the column of labels; default: the last.")
    ] = None,
    digits: Annotated[str | None, typer.Option(help="Of MNIST's files, two digits; default 3,8.")] = None,
    iterations: Annotated[int, typer.Option(help="Of Nesterov's method.")] = 32,
    batch: Annotated[int, typer.Option(help="Rows of an iteration; 0: as many as suit the slots.")] = 0,
    rate: Annotated[
        float, typer.Option(help="Learning rate; lower it where weights leave their range.")
    ] = 1.0,
    weight_range: Annotated[
        float, typer.Option(help="Largest entry of the state, weights times up to 2; errors grow with it.")
    ] = 8.0,
    order: Annotated[str, typer.Option(help="Of the blocks of rows: cyclic or random.")] = "cyclic",
    json: JsonFile = None,
) -> None:
    """Train a logistic regression on encrypted rows, and compare with the training in the clear."""
    _check_files(json, common.plot)
    two = _digits("3,8" if digits is None else digits)
    expect_with("--data", common.data is not None, {"--label": label, "--digits": digits})
    from crenel.workloads import data as tables
    from crenel.workloads.regression import measure

    table = tables.load_table(common.data, label, digits=two, seed=common.seed)
    session = _session("helr", common)
    result = measure.measure(
        session, table, common.of_the_run(), iterations=iterations, batch=batch or None, rate=rate,
        order=cast(Any, order), weight_range=weight_range,
    )  # fmt: skip
    finish(session.report, session.device.info, result, json, common.plot)


@app.command()
@with_options(Common)
def sort(
    common: Common,
    column: Annotated[str | None, typer.Option(help="Of a CSV file, the column of values.")] = None,
    count: Annotated[int, typer.Option(help="Values; 0: all of the file, or 16.")] = 0,
    comparator: Annotated[str | None, typer.Option(help="Degrees of the composed sign, 15,15,15,15.")] = None,
    radix: Annotated[
        int, typer.Option(help="2, or 4: two stages of the network a comparison; 0: what fits.")
    ] = 0,
    low: Annotated[
        float | None, typer.Option(help="No value is below: public; default 0, or the least.")
    ] = None,
    high: Annotated[
        float | None, typer.Option(help="No value is above: public; default 1, or the largest.")
    ] = None,
    descending: Annotated[bool, typer.Option("--descending", help="The largest first.")] = False,
    json: ValuesFile = None,
) -> None:
    """Sort encrypted values, and compare with the order in the clear."""
    _check_files(json, common.plot)
    expect_with("--data", common.data is not None, {"--column": column})
    from crenel.workloads import data as tables
    from crenel.workloads.sorting import measure

    data = common.data
    values = tables.load_values(data, count or (16 if data is None else None), common.seed, column=column)
    session = _session("sort", common)
    result = measure.measure(
        session, values, common.of_the_run(), source="uniform in [0, 1)" if data is None else data.name,
        comparator=comparator, radix=cast(Any, radix or None), descending=descending, low=low, high=high,
    )  # fmt: skip
    finish(session.report, session.device.info, result, json, common.plot)


@app.command()
@with_options(OfNetworks)
def resnet20(
    common: OfNetworks,
    weights: Annotated[Path | None, typer.Option(help="Trained weights: .npz, .safetensors, .pth.")] = None,
    calibration: Annotated[
        Path | None, typer.Option(help="Training images; default: those of the folder of --data.")
    ] = None,
    json: ValuesFile = None,
) -> None:
    """Classify CIFAR-10's test images by ResNet-20, and compare with the network in the clear."""
    _check_network_files(common, json)
    from crenel.workloads.networks.resnet20 import task

    made = _kept("resnet20", common, weights, calibration) or task(
        weights, common.data, calibration, common.samples
    )
    _network(made, common, "boot35", json)


@app.command()
@with_options(OfNetworks)
def keras(
    common: OfNetworks,
    file: Annotated[Path | None, typer.Option(help="A sequential network of Keras, .h5.")] = None,
    calibration: Annotated[
        Path | None, typer.Option(help="Training images; default: those of the folder of --data.")
    ] = None,
    replace: Annotated[
        list[str] | None,
        typer.Option(help="What has no polynomial by what has, as MaxPool=relu; several times."),
    ] = None,
    divide: Annotated[
        float, typer.Option(help="Bytes of images are divided by it, as they were in the training.")
    ] = 1.0,
    json: ValuesFile = None,
) -> None:
    """Classify CIFAR-10's test images by a network of a Keras file, and compare with it in the clear."""
    _check_network_files(common, json)
    from crenel.workloads.networks.keras_images import task

    made = _kept("keras", common, file, calibration) or task(
        file, common.data, calibration, common.samples, replace=replace or (), divide=divide
    )
    _network(made, common, "boot35", json)


@app.command()
@with_options(OfNetworks)
def mlp(common: OfNetworks, seed: Seed = 0, json: ValuesFile = None) -> None:
    """Classify digits by layers 784-128-128-10 with squares; --data: a folder of MNIST's files."""
    _digits_network("mlp", common, seed, "leveled-n14-s40", json)


@app.command()
@with_options(OfNetworks)
def lenet(common: OfNetworks, seed: Seed = 0, json: ValuesFile = None) -> None:
    """Classify digits by two convolutions and two dense layers with squares; --data: MNIST's folder."""
    _digits_network("lenet", common, seed, "leveled-n15-s40", json)


@app.command("bert-tiny")
@with_options(OfNetworks)
def bert_tiny(
    common: OfNetworks,
    seed: Seed = 0,
    tokens: Annotated[int, typer.Option(help="Of a sequence, a power of two.", max=MOST_TOKENS)] = 128,
    json: ValuesFile = None,
) -> None:
    """Compute BERT-Tiny's shape with random weights on embedded sequences; there is no --data."""
    _check_network_files(common, json)
    from crenel.workloads.networks.bert import task

    if common.data is not None:
        raise ParameterError("bert-tiny takes random sequences, no --data", {"data": str(common.data)})
    made = _kept("bert-tiny", common) or task(seed, common.samples, tokens)
    _network(made, common, "boot40", json)


@app.command()
@with_options(OfNetworks)
def minilm(
    common: OfNetworks,
    weights: Annotated[Path | None, typer.Option(help="paraphrase-MiniLM-L3-v2 as an ONNX file.")] = None,
    seed: Seed = 0,
    tokens: Annotated[int, typer.Option(help="Of a random sentence.", max=MOST_TOKENS)] = 16,
    length: Annotated[
        int, typer.Option(help="Of a sequence with padding, a power of two.", max=MOST_TOKENS)
    ] = 32,
    tokenizer: Annotated[
        Path | None, typer.Option(help="vocab.txt or tokenizer.json of BERT: --data has sentences in words.")
    ] = None,
    calibration: Annotated[
        Path | None, typer.Option(help="A text like --data that shows the ranges; default: random words.")
    ] = None,
    json: ValuesFile = None,
) -> None:
    """Embed sentences of random words, or those of --data: a line each, in words or numbers of tokens."""
    _check_network_files(common, json)
    from crenel.workloads.networks.minilm import task

    made = _kept("minilm", common, weights, tokenizer, calibration) or task(
        weights, common.data, common.samples, tokens=tokens, length=length, seed=seed, tokenizer=tokenizer,
        calibration=calibration,
    )  # fmt: skip
    _network(made, common, "boot40", json)


def _digits_network(name: str, common: OfNetworks, seed: int, params: str, json: Path | None) -> None:
    _check_network_files(common, json)
    from crenel.workloads.networks.digits import task

    made = _kept(name, common) or task(name, common.data, common.samples, seed)
    _network(made, common, params, json)


def _kept(name: str, common: OfNetworks, *files: Path | None) -> Task | None:
    """The task of --inputs; None: there is none. files: other options that would make one."""
    if common.inputs is None:
        return None
    if common.program is None or any(f is not None for f in (common.data, common.clear, *files)):
        raise ParameterError(
            "--inputs has samples and results for a compiled program: with --program, and without --clear "
            "and files of weights and data",
            {"path": str(common.inputs)},
        )
    from crenel.workloads.networks.clear import kept

    return kept(common.inputs, name)


def _network(task: Task, common: OfNetworks, params: str, json: Path | None) -> None:
    """Runs a task, or simulates it; `params`: the set for real data."""
    import crenel
    from crenel.workloads.networks.measure import run, simulated
    from crenel.workloads.report import Report

    report, chosen, info = Report(), _preset(common.params or params), crenel.device_info(common.device)
    _introduce(report, chosen, info)
    if common.simulate_only:
        result = simulated(task, chosen, common.of_the_run(), report)
    else:
        result = run(task, chosen, common.device, common.of_the_run(), report)
    finish(report, info, result, json, common.plot)


def _digits(text: str) -> tuple[int, int]:
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        raise ParameterError(f"--digits takes two digits, as in 3,8, got {text!r}", {"digits": text})
    return int(parts[0]), int(parts[1])


def _check_files(
    json: Path | None, plot: Path | None, save: Path | None = None, clear: Path | None = None
) -> None:
    """Before minutes of work: can the results be written?"""
    for option, path in (("--json", json), ("--plot", plot), ("--save", save), ("--clear", clear)):
        if path is not None and not path.parent.is_dir():
            raise ParameterError(f"{option}: there is no folder {path.parent}", {"path": str(path)})
        if path is not None and (path.is_dir() or not os.access(path.parent, os.W_OK)):
            raise ParameterError(f"{option}: {path} cannot be written", {"path": str(path)})
    if json is not None and json.exists():
        raise ParameterError(f"--json: {json} exists; name a new file", {"path": str(json)})
    expect_figure(plot)


def _check_network_files(common: OfNetworks, json: Path | None) -> None:
    there = common.clear if common.clear is not None and common.clear.is_file() else None
    _check_files(json, common.plot, common.save, None if there else common.clear)
    if there:  # then it is only read
        from crenel.workloads.networks.clear import expect_results

        expect_results(there)


def _session(workload: str, common: Common) -> Session:
    import crenel
    from crenel.workloads.report import Report
    from crenel.workloads.session import Session

    info = crenel.device_info(common.device)
    report = Report()
    on_gpu = info.kind == "cuda" or info.name.startswith("cuda:")  # several as one, too
    chosen = _preset(common.params or (ON_GPU if on_gpu else QUICK)[workload])
    _introduce(report, chosen, info)
    if chosen.insecure and common.params is None:
        report.line(f"a toy set, so that this ends soon; --params {ON_GPU[workload]} is a set for real data")
    return Session(chosen, common.device, report, common.stages, common.energy)


def _introduce(report: Report, params: ckks.Params, info: crenel.DeviceInfo) -> None:
    from crenel._crenel import security_text

    report.line(f"{params.name} on {info.name} ({info.description}): {security_text(params)}")


def _preset(name: str) -> ckks.Params:
    from crenel import ckks

    with warnings.catch_warnings():
        # Said in the report, and in the record.
        warnings.simplefilter("ignore", ckks.InsecureParametersWarning)
        return ckks.preset(name, allow_insecure=True)
