"""crenel workload mlp and resnet20: networks, their files and records; a wrong result is a failure."""

import dataclasses
import io
import json
import re

import numpy as np
import pytest
from conftest import NEGATIVE_SEED, device_names, open_context, toy
from needed import needs

from crenel import nn
from crenel.errors import MissingFileError, ParameterError, SerializationError
from crenel.workloads import records
from crenel.workloads.networks import RunOptions, Task, bert, cifar, layers, minilm, tokenize
from crenel.workloads.networks.clear import kept, results
from crenel.workloads.networks.measure import prepare
from crenel.workloads.networks.resnet20 import BLOCKS, CHANNELS, normalised, resnet20
from crenel.workloads.networks.task import least_cosine
from crenel.workloads.report import Report

LEVELED = "toy-leveled-n14-s40"


@pytest.fixture
def rng():
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print("seed", seed)
    return np.random.default_rng(seed)


# ---- Commands


@pytest.mark.parametrize("device", [name for name in device_names() if name != "ref"])
def test_a_network_and_its_record(invoke, device, tmp_path):
    needs("demo", "sklearn")
    open_context(toy(LEVELED), device)  # or skips
    seed = int(np.random.default_rng().integers(1000))
    print("seed", seed)
    file, saved = tmp_path / "mlp.json", tmp_path / "mlp.crn"
    options = ["mlp", "--device", device, "--params", LEVELED, "--images", "5", "--batch", "2"]
    code, out, err = invoke(
        *options, "--seed", str(seed), "--errors", "--warm", "--save", str(saved), "--json", str(file)
    )
    assert code == 0, out + err
    assert "INSECURE" in out and "levels            5 of 6, 0 bootstraps" in out
    (found,), where = records.read(file)
    assert "crenel workload mlp" in where["command"]
    of_a_network(found)

    # The same program again, from its file, in the clear alone.
    again, clear = tmp_path / "again.json", tmp_path / "clear.npz"
    more = ["--clear", str(clear), "--seed", str(seed), "--program", str(saved)]
    code, out, err = invoke(*options, *more, "--simulate-only", "--json", str(again))
    assert code == 0 and clear.exists(), out + err
    assert "evaluation keys" not in out and "memory, by the library" not in out
    assert "memory of a GPU" in out  # by a dry run
    (simulated,), _ = records.read(again)
    assert simulated.simulated and simulated.program == found.program and simulated.compile_s is None
    assert simulated.data_digest == found.data_digest and simulated.expected == found.expected

    # And with that file's samples and results: nothing that makes the network is asked for.
    far = tmp_path / "far.json"
    kept = ["mlp", "--device", device, "--params", LEVELED, "--batch", "2"]
    with_program = [*kept, "--program", str(saved)]
    code, out, err = invoke(*with_program, "--inputs", str(clear), "--json", str(far))
    assert code == 0 and "in the clear: as the file has it" in out, out + err
    (elsewhere,), _ = records.read(far)
    assert elsewhere.correct and elsewhere.program == found.program and elsewhere.steps == 5
    assert elsewhere.accuracy == found.accuracy and elsewhere.expected == found.expected
    assert (elsewhere.data, elsewhere.weights) == (found.data, found.weights)
    for given, says in [
        ([*kept, "--inputs", str(clear)], "--inputs has samples and results for a compiled program"),
        ([*with_program, "--inputs", str(clear), "--data", str(tmp_path)], "without --clear and files"),
        (["lenet", *with_program[1:], "--inputs", str(clear)], "has samples of mlp, not lenet"),
        ([*with_program, "--inputs", str(tmp_path / "none.npz")], "none.npz"),
    ]:
        code, out, err = invoke(*given)
        assert code == 2 and says in err, out + err


def of_a_network(found: records.Network) -> None:
    """What a record of five images in batches of two says."""
    assert isinstance(found, records.Network) and found.network == "mlp" and found.correct
    assert len(found.run_s) == 3 and found.steps == 5 and found.batch == 2 and found.warm
    assert found.total_s == pytest.approx(sum(found.run_s))
    # The last run has one sample: the median is of the full ones.
    assert found.latency_us == pytest.approx(1e6 * np.mean(found.run_s[:2]))
    assert 0 < found.error <= found.bound and found.cosine > 0.999999 and found.agreement == 1
    assert found.activation == "quadratic x 2" and len(found.found) == 50
    assert np.abs(np.subtract(found.found, found.expected)).max() == pytest.approx(found.float_error)
    assert [layer.kind for layer in found.layers] == [
        "input",
        "linear",
        "square",
        "linear",
        "square",
        "linear",
    ]
    assert [layer.level for layer in found.layers] == [5, 4, 3, 2, 1, 0]
    timed = found.layers[1:]
    assert all(layer.seconds > 0 and layer.measured < 4 * layer.expected for layer in timed)
    assert sum(s.seconds for s in found.stages) == pytest.approx(sum(layer.seconds for layer in timed))


def test_results_in_the_clear_are_kept_in_a_file(tmp_path, rng):
    """Made once; refused where network, program or samples are others, and what is no such file."""
    x, file = rng.normal(size=(30, 5)), tmp_path / "clear.npz"
    model = nn.Sequential(nn.Linear(rng.normal(size=(3, 5))), nn.Square(), nn.Linear(rng.normal(size=(2, 3))))
    task = Task("small", model, "random", "random", x[:20], x[20:])
    program = nn.compile(model, x[:20], params=toy(LEVELED), device="cpu")
    made = results(task, program, file, report := Report())
    np.testing.assert_array_equal(made.exact, model(x[20:]))
    assert made.noise > 0 and "in the clear: the network in float64" in report.times
    content = file.read_bytes()
    again = results(task, program, file, report := Report())
    assert [*report.times] == ["in the clear: as the file has it"] and file.read_bytes() == content
    for name in ("exact", "plan", "noisy"):
        np.testing.assert_array_equal(getattr(again, name), getattr(made, name))
    other = nn.Sequential(*model.modules[:2], nn.Linear(rng.normal(size=(2, 3))))
    with pytest.raises(ParameterError, match="results of another network"):
        results(dataclasses.replace(task, model=other), program, file, Report())
    with pytest.raises(ParameterError, match="results of other samples"):
        results(dataclasses.replace(task, samples=x[:10]), program, file, Report())
    with pytest.raises(ParameterError, match="results of other program"):
        wider = nn.compile(model, x[:20], params=toy(LEVELED), device="cpu", margin=3.0)
        results(task, wider, file, Report())
    with np.load(io.BytesIO(content)) as arrays:
        forged = {**arrays, "noisy": np.full_like(arrays["noisy"], np.nan)}
        del (short := {**arrays})["plan"]
    (again := kept(file, "small")) and np.testing.assert_array_equal(again.samples, task.samples)
    with pytest.raises(ParameterError, match="without its network: name a compiled program"):
        prepare(again, toy(LEVELED), RunOptions(), Report())
    with pytest.raises(ParameterError, match="small without its network: no results"):
        results(again, program, None, Report())
    nothing = {**forged, "inputs": forged["inputs"][:0]}
    for there, what in [(nothing, "expected finite float64 samples"), ({"inputs": x}, "no array 'name'")]:
        np.savez(other_file := tmp_path / "other.npz", **there)
        with pytest.raises(SerializationError, match=what):
            kept(other_file, "small")
    for there, what in [(forged, "expected finite float64"), (short, "no array 'plan'")]:
        np.savez(file, **there)
        with pytest.raises(SerializationError, match=what):
            results(task, program, file, Report())
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(SerializationError, match="no arrays of numbers"):
        results(task, program, file, Report())


def test_errors_may_be_drawn_for_the_first_samples_alone(tmp_path, rng):
    """Enough where the others are computed under encryption; not where they are what is drawn."""
    x, file = rng.normal(size=(30, 5)), tmp_path / "clear.npz"
    model = nn.Sequential(nn.Linear(rng.normal(size=(3, 5))), nn.Square())
    task = Task("small", model, "random", "random", x[:20], x[20:], rng.integers(0, 3, 10))
    program = nn.compile(model, x[:20], params=toy(LEVELED), device="cpu")
    made = results(task, program, file, Report(), drawn=4)
    assert made.noisy.shape == (4, 3) and made.plan.shape == made.exact.shape == (10, 3)
    assert made.noise == pytest.approx(np.sqrt(np.mean((made.noisy - made.plan[:4]) ** 2))) and made.noise > 0
    first = (made.noisy.argmax(axis=1) == task.labels[:4]).mean()
    assert task.accuracy(made.noisy) == first
    again = results(task, program, file, Report(), drawn=8)
    np.testing.assert_array_equal(again.noisy, made.noisy)
    with pytest.raises(ParameterError, match="errors of 4 samples, expected 10"):
        results(task, program, file, Report())


def test_minimax_is_not_the_degree_of_a_task(rng):
    """A task's own degree is of fitted polynomials."""
    x = rng.normal(size=(60, 4))
    model = nn.Sequential(nn.Linear(rng.normal(size=(3, 4))), nn.ReLU(), nn.Linear(rng.normal(size=(2, 3))))
    task = Task("small", model, "random", "random", x[:50], x[50:], degree=7)
    params = toy("toy-boot40")
    for options, expected in [
        (RunOptions(), "relu 7 x 1"),
        (RunOptions(activation="minimax"), "relu 15,15,15 x 1"),
        (RunOptions(activation="minimax", degree=15), "relu 15 x 1"),
    ]:
        assert layers.polynomials(prepare(task, params, options, Report()).plan) == expected


def test_a_wrong_result_is_a_failure(invoke, monkeypatch):
    needs("demo", "sklearn")
    honest = nn.Client.decrypt
    monkeypatch.setattr(nn.Client, "decrypt", lambda *given: honest(*given) + 1e-3)
    code, out, err = invoke("mlp", "--device", "cpu", "--params", LEVELED, "--images", "1", "--no-stages")
    assert code == 1 and "EXCEEDS" in out, out + err


@pytest.mark.parametrize("more", [["--errors"], ["--no-stages"], ["--simulate-only"]], ids=lambda m: m[0][2:])
def test_a_figure(invoke, tmp_path, more):
    needs("demo", "sklearn")
    needs("demo", "matplotlib")
    figure = tmp_path / "mlp.png"
    common = ["--device", "cpu", "--params", LEVELED, "--images", "2", "--plot", str(figure)]
    code, out, err = invoke("mlp", *common, *more)
    assert code == 0, out + err
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_programs_that_are_of_something_else(invoke, tmp_path, rng):
    needs("demo", "sklearn")
    other = tmp_path / "other.crn"
    model = nn.Sequential(nn.Linear(rng.normal(size=(10, 5))))
    nn.compile(model, rng.normal(size=(20, 5)), params=toy(LEVELED)).save(other)
    options = ["mlp", "--device", "cpu", "--images", "1", "--program", str(other)]
    code, _, err = invoke(*options, "--params", LEVELED)
    assert code == 2 and "takes samples of shape (5,), not (1, 28, 28)" in err
    code, _, err = invoke(*options, "--params", "toy-leveled-n15-s40")
    assert code == 2 and "is of parameters toy-leveled-n14-s40, not toy-leveled-n15-s40" in err
    code, _, err = invoke(*options[:-1], str(tmp_path / "none.crn"), "--params", LEVELED)
    assert code == 2 and "none.crn" in err


def test_resnet20_says_what_it_needs(invoke, tmp_path):
    code, _, err = invoke("resnet20", "--device", "cpu")
    assert code == 2 and all(
        f in err for f in ("--weights", "--data", "--calibration", "test_batch.bin", ".npz")
    )
    code, _, err = invoke(
        "resnet20", "--device", "cpu", "--data", str(tmp_path)
    )  # calibration is of the folder
    assert code == 2 and "needs --weights. " in err


# ---- Transformers


def test_bert_tiny_has_samples_of_its_own(invoke, tmp_path):
    task = bert.task(3, 2, tokens=8)
    assert task.samples.shape == (2, 8, bert.FEATURES) and task.calibration.shape[0] == bert.CALIBRATION
    assert np.abs(task.samples[:, None] - task.calibration).max(axis=(2, 3)).min() > 1
    np.testing.assert_array_equal(bert.task(3, 2, tokens=8).samples, task.samples)
    code, _, err = invoke("bert-tiny", "--device", "cpu", "--data", str(tmp_path))
    assert code == 2 and "no --data" in err
    code, _, err = invoke("bert-tiny", "--device", "cpu", "--params", "toy-boot40", "--tokens", "12")
    assert code == 2 and "12 tokens" in err


def test_sentences(invoke, tmp_path, rng):
    code, _, err = invoke("minilm", "--device", "cpu")
    assert code == 2 and "minilm needs --weights" in err
    words = minilm.random_sentences(rng, 3, 8)
    assert all(len(s) == 8 and (s[0], s[-1]) == (minilm.FIRST, minilm.LAST) for s in words)
    file = tmp_path / "sentences.txt"
    file.write_text("\n".join(" ".join(map(str, s)) for s in words) + "\n")
    assert minilm.sentences(file, 2) == words[:2]
    for text, count, error, what in [
        ("1 2 3", 2, ParameterError, "2 sentences, expected 1 to 1"),
        ("", 1, ParameterError, "1 sentences, expected 1 to 0"),
        ("1 2 3\n4 5", 2, ParameterError, "of 2 tokens, as sentence 2, to 3, as sentence 1"),
        ("1 2\n3 -4", 1, SerializationError, "sentence 2"),
        ("1 99999999999999999999", 1, SerializationError, "sentence 1"),
    ]:
        file.write_text(text)
        with pytest.raises(error, match=what):
            minilm.sentences(file, count)
    with pytest.raises(ParameterError, match="2 tokens"):
        minilm.random_sentences(rng, 1, 2)
    # A text that shows ranges: whatever its sentences' lengths, in parts of one length.
    text = [minilm.random_sentences(rng, 1, int(n))[0] for n in rng.integers(3, 9, 400)]
    file.write_text("\n".join(" ".join(map(str, s)) for s in text) + "\n")
    cut = minilm.parts(file, 6, None)
    ends = {s[-2] for s in text}
    assert 64 < len(cut) <= minilm.MOST and all(len(s) == 6 and s[-2] in ends for s in cut)
    assert {s[0] for s in cut} == {minilm.FIRST} and {s[-1] for s in cut} == {minilm.LAST}
    words = [k for s in text[:6] for k in s[1:-1]]
    assert cut[0][1:4] == words[:3]
    with pytest.raises(ParameterError, match="expected 99998 or more"):
        minilm.parts(file, 100000, None)


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cats", "un", "##aff", "##able", "are", ",", "cafe"]


def test_sentences_in_words(invoke, tmp_path, rng):
    """By WordPiece: lower case, accents off, punctuation apart, the longest pieces first."""
    tokenizers = needs("test", "tokenizers")
    order = ["[PAD]", *rng.permutation(WORDS[1:])]  # numbers are places in the file
    (vocabulary := tmp_path / "vocab.txt").write_text("\n".join(order) + "\n", encoding="utf-8")
    (file := tmp_path / "sentences.txt").write_text("Cats are unaffable\n\nun , CAFÉ, zzz\n", "utf-8")
    number = {word: k for k, word in enumerate(order)}
    expected = [
        ["[CLS]", "cats", "are", "un", "##aff", "##able", "[SEP]"],
        ["[CLS]", "un", ",", "cafe", ",", "[UNK]", "[SEP]"],
    ]
    found = minilm.sentences(file, 2, vocabulary)
    assert found == [[number[word] for word in sentence] for sentence in expected]
    made = tokenize.of_file(vocabulary)
    assert made(["cats cats"]) == [[number[w] for w in ("[CLS]", "cats", "cats", "[SEP]")]]
    whole = tokenizers.Tokenizer(tokenizers.models.WordPiece(number, unk_token="[UNK]"))
    whole.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    whole.normalizer = tokenizers.normalizers.BertNormalizer()
    whole.post_processor = tokenizers.processors.BertProcessing(
        ("[SEP]", number["[SEP]"]), ("[CLS]", number["[CLS]"])
    )
    whole.enable_padding(length=12)
    whole.enable_truncation(3)  # neither is wanted: the network pads
    whole.save(str(tmp_path / "tokenizer.json"))
    assert minilm.sentences(file, 2, tmp_path / "tokenizer.json") == found
    with pytest.raises(ParameterError, match="sentence 1 has no words"):
        made([" \t "])
    file.write_text("cats\ncats are\n")
    with pytest.raises(ParameterError, match="of 3 tokens, as sentence 1, to 4, as sentence 2"):
        minilm.sentences(file, 2, vocabulary)
    for name, text, what in [
        ("vocab.txt", "cats\n[UNK]\n", "vocab.txt: neither a vocabulary nor|no token"),
        ("vocab.txt", "", "vocab.txt: "),
        ("bad.json", "{}", "bad.json: neither"),
        ("bad.json", json.dumps(json.loads(whole.to_str())["model"]), "bad.json: neither"),
    ]:
        (tmp_path / name).write_text(text)
        with pytest.raises(SerializationError, match=what):
            tokenize.of_file(tmp_path / name)
    (tmp_path / "vocab.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(SerializationError, match="vocab.txt: neither"):
        tokenize.of_file(tmp_path / "vocab.txt")
    with pytest.raises(MissingFileError):
        tokenize.of_file(tmp_path / "none.txt")
    code, _, err = invoke("minilm", "--device", "cpu", "--tokenizer", str(vocabulary))
    assert code == 2 and "--tokenizer without --data" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["mlp", "--seed", "-1"], NEGATIVE_SEED),
        (["lenet", "--seed", "-1"], NEGATIVE_SEED),
        (["bert-tiny", "--seed", "-1"], NEGATIVE_SEED),
        (["bert-tiny", "--tokens", "-2"], "tokens must be at least 1"),
        (["bert-tiny", "--samples", "-1"], "samples must be at least 1"),
        (["minilm", "--length", "0"], "length must be at least 1"),
        (["mlp", "--save", "none/x.crn"], "--save: there is no folder none"),
        (["bert-tiny", "--clear", "none/x.npz"], "--clear: there is no folder none"),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_arguments_are_refused_before_any_work(invoke, arguments, says):
    code, out, err = invoke(*arguments, "--device", "cpu", "--simulate-only")
    assert code == 2 and re.search(says, err) and "compile" not in out


def test_a_file_of_results_is_checked_before_the_compilation(invoke, tmp_path):
    """What is no such file, in this library's words and not NumPy's."""
    random, other, objects = tmp_path / "rnd.bin", tmp_path / "other.npz", tmp_path / "objects.npz"
    random.write_bytes(b"\x80" + np.random.default_rng().bytes(1000))
    np.savez(other, x=np.arange(3))
    np.savez(objects, exact=np.array([{}], dtype=object))
    for file, says in (
        (random, "no arrays of numbers: expected a file .npz or .npy"),
        (other, "no array 'exact'"),
        (objects, "no arrays of numbers: Python objects"),
    ):
        code, out, err = invoke("mlp", "--device", "cpu", "--simulate-only", "--clear", str(file))
        assert code == 2 and f"SerializationError: {file}: {says}" in err and "pickle" not in err
        assert "compile" not in out


def test_minilm_takes_no_graph_that_is_forged(tmp_path):
    onnx = needs("test", "onnx")
    node, empty = onnx.helper.make_node, onnx.numpy_helper.from_array(np.zeros((2, 2)), "a.bias")
    nodes = [node("Relu", [], []), node("MatMul", ["x"], ["m"]), node("Add", ["m", "a.bias"], ["y"])]
    graph = onnx.helper.make_graph(nodes, "net", [], [], [empty])
    (tmp_path / "m.onnx").write_bytes(onnx.helper.make_model(graph).SerializeToString())
    with pytest.raises(SerializationError, match="not the weights of paraphrase-MiniLM"):
        minilm.read(tmp_path / "m.onnx")
    with pytest.raises(MissingFileError):
        minilm.read(tmp_path / "none.onnx")


# ---- ResNet-20


def random_weights(rng) -> dict[str, np.ndarray]:
    found = {"conv1.weight": rng.normal(0, 0.2, (16, 3, 3, 3))}

    def norm(place: str, channels: int) -> None:
        for part in ("weight", "bias", "running_mean", "running_var"):
            found[f"{place}.{part}"] = rng.uniform(0.5, 1.5, channels)

    norm("bn1", 16)
    inputs = 16
    for stage, outputs in enumerate(CHANNELS, 1):
        for number in range(BLOCKS):
            place = f"layer{stage}.{number}"
            found[f"{place}.conv1.weight"] = rng.normal(0, 0.08, (outputs, inputs, 3, 3))
            found[f"{place}.conv2.weight"] = rng.normal(0, 0.08, (outputs, outputs, 3, 3))
            norm(f"{place}.bn1", outputs)
            norm(f"{place}.bn2", outputs)
            inputs = outputs
    found["linear.weight"], found["linear.bias"] = rng.normal(0, 0.3, (10, 64)), rng.normal(size=10)
    return {name: array.astype(np.float32) for name, array in found.items()}


def convolved(x: np.ndarray, w: np.ndarray, stride: int) -> np.ndarray:
    """3 x 3 with zeros around."""
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (1, 1), (1, 1))), (3, 3), (1, 2))
    return np.einsum("iyxvh,oivh->oyx", windows[:, ::stride, ::stride], w)


def forward(w: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """ResNet-20 on one normalised image, straight from its definition."""

    def norm(place: str, x: np.ndarray) -> np.ndarray:
        mean, variance, gain, shift = (
            w[f"{place}.{part}"][:, None, None].astype(np.float64)
            for part in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / np.sqrt(variance + 1e-5) * gain + shift

    x = np.maximum(norm("bn1", convolved(x, w["conv1.weight"], 1)), 0)
    for stage in (1, 2, 3):
        for number in range(BLOCKS):
            place, stride = f"layer{stage}.{number}", 2 if stage > 1 and number == 0 else 1
            y = np.maximum(norm(f"{place}.bn1", convolved(x, w[f"{place}.conv1.weight"], stride)), 0)
            y = norm(f"{place}.bn2", convolved(y, w[f"{place}.conv2.weight"], 1))
            if stride == 2:
                quarter = len(x) // 2
                x = np.pad(x[:, ::2, ::2], ((quarter, quarter), (0, 0), (0, 0)))
            x = np.maximum(x + y, 0)
    return w["linear.weight"] @ x.mean(axis=(1, 2)) + w["linear.bias"]


@pytest.mark.parametrize("prefix", ["", "module."])
def test_resnet20_is_its_definition(rng, prefix):
    w = random_weights(rng)
    images = normalised(rng.integers(0, 256, (2, 3, 32, 32), dtype=np.uint8))
    found = resnet20({prefix + name: array for name, array in w.items()})(images)
    expected = np.array([forward(w, image) for image in images])
    assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()


def test_weights_that_are_not_resnet20s(rng):
    w = random_weights(rng)
    counters = w | {"bn1.num_batches_tracked": np.array(7)}
    resnet20(counters)  # PyTorch's own
    missing = {k: v for k, v in w.items() if k != "layer2.1.bn2.bias"}
    with pytest.raises(ParameterError, match="'layer2.1.bn2.bias'"):
        resnet20(missing)
    with pytest.raises(ParameterError, match="does not have, 'layer4.0.conv1.weight'"):
        resnet20(w | {"layer4.0.conv1.weight": np.ones(3, np.float32)})
    with pytest.raises(ParameterError, match="'linear.bias'.*\\(11,\\)"):
        resnet20(w | {"linear.bias": np.ones(11, np.float32)})
    with pytest.raises(ParameterError, match="'conv1.weight'"):
        resnet20(w | {"conv1.weight": np.full((16, 3, 3, 3), np.nan, np.float32)})


# ---- CIFAR-10's files


def test_images_of_both_kinds_of_files(rng, tmp_path):
    images = rng.integers(0, 256, (7, 3, 32, 32), dtype=np.uint8)
    labels = rng.integers(0, 10, 7, dtype=np.uint8)
    rows = np.column_stack([labels, images.reshape(7, -1)])
    (tmp_path / "test_batch.bin").write_bytes(rows.tobytes())
    np.savez(tmp_path / "own.npz", images=images, labels=labels)
    for path in (tmp_path, tmp_path / "test_batch.bin", tmp_path / "own.npz"):
        found = cifar.read(path)
        assert (found.images == images).all() and (found.labels == labels).all()
    assert len(cifar.first(found, 3, "images").images) == 3
    for count in (0, 8):
        with pytest.raises(ParameterError, match="expected 1 to 7"):
            cifar.first(found, count, "images")


@pytest.mark.parametrize(
    ("data", "says"),
    [(b"", "0 bytes"), (b"x" * 3072, "3072 bytes"), (b"\x0a" + b"x" * 3072, "label of image 0 is 10")],
)
def test_files_that_are_no_batches(tmp_path, data, says):
    (tmp_path / "bad.bin").write_bytes(data)
    with pytest.raises(SerializationError, match=says):
        cifar.read(tmp_path / "bad.bin")


@pytest.mark.parametrize(
    "arrays",
    [
        {"images": np.zeros((2, 32, 32, 3), np.uint8), "labels": np.zeros(2, np.uint8)},
        {"images": np.zeros((2, 3, 32, 32), np.float32), "labels": np.zeros(2, np.uint8)},
        {"images": np.zeros((2, 3, 32, 32), np.uint8), "labels": np.zeros(3, np.uint8)},
        {"images": np.zeros((2, 3, 32, 32), np.uint8), "labels": np.full(2, -1)},
        {"images": np.zeros((0, 3, 32, 32), np.uint8), "labels": np.zeros(0, np.uint8)},
        {"images": np.zeros((2, 3, 32, 32), np.uint8)},
        {"images": np.uint8(3), "labels": np.zeros(0, np.uint8)},
    ],
)
def test_arrays_that_are_no_images(tmp_path, arrays):
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(SerializationError, match="bad.npz"):
        cifar.read(tmp_path / "bad.npz")


# ---- Tasks


def test_tasks_that_do_not_fit(rng):
    model = nn.Sequential(nn.Linear(np.ones((2, 3))))
    x = rng.normal(size=(4, 3))
    good = Task("t", model, "own", "own", x, x, np.zeros(4, np.int64))
    assert good.accuracy(np.array([[1.0, 0]] * 4)) == 1.0
    for change in ({"samples": x[:0]}, {"samples": x[:, :2]}, {"labels": np.zeros(3, np.int64)}):
        with pytest.raises(ParameterError):
            dataclasses.replace(good, **change)


def test_cosines():
    a = np.array([[1.0, 0.0], [0.0, 0.0], [3.0, 4.0]])
    assert least_cosine(a, a) == 1.0
    assert least_cosine(np.array([[1.0, 1.0]]), np.array([[1.0, 0.0]])) == pytest.approx(np.sqrt(0.5))


def test_records_refuse_forged_layers(tmp_path):
    """A file that is no record is named, whatever is wrong with it."""
    head = {"kind": "crenel-bench", "format": 1, "suite": "workload", "provenance": {}}
    row = {"name": "network", "memory": {}, "energy": {}, "stages": [], "layers": [3]}
    (tmp_path / "bad.json").write_text(json.dumps(head | {"results": [row]}))
    with pytest.raises(SerializationError, match=re.escape("bad.json")):
        records.read(tmp_path / "bad.json")
