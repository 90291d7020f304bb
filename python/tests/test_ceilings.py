"""Ceilings of a card: those of the library and of a file, and what is said where they are another card's."""

import json

import numpy as np
import pytest

import crenel
from crenel import analyze, ceilings
from crenel.cli import main
from crenel.errors import FileError


@pytest.fixture
def document():
    """Of random rates, as a probe writes them."""
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print("seed", seed)
    rng = np.random.default_rng(seed)
    rates = {name: {"value": float(rng.uniform(1, 9)) * 1e12, "unit": "1/s", "what": "a rate"}
             for name in ceilings.RATES}  # fmt: skip
    fall = np.sort(rng.uniform(rates["dram"]["value"], 1e13, 5))[::-1]
    rates["l2"] |= {
        "value": fall[0],
        "by_working_set": [[(k + 1) << 23, rate] for k, rate in enumerate(fall)],
    }
    return {"kind": "crenel-rates", "format": 1, "device": "NVIDIA B200", "provenance": {}, "rates": rates}


@pytest.fixture
def dry():
    try:
        return crenel.Device("cuda:dry")
    except crenel.DeviceError as error:
        pytest.skip(str(error))


def stored(tmp_path, document):
    path = tmp_path / "rates.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def test_a_file_has_what_it_says(tmp_path, document):
    found = analyze.load_ceilings(stored(tmp_path, document))
    assert found.device == "NVIDIA B200"
    for name in ceilings.RATES:
        assert getattr(found, name) == document["rates"][name]["value"]
    assert [list(point) for point in found.l2_curve] == document["rates"]["l2"]["by_working_set"]


def test_those_of_the_library_are_such_a_file(tmp_path):
    assert analyze.load_ceilings(stored(tmp_path, ceilings.data())) == analyze.load_ceilings()


def _changed(document, path, value):
    at = document
    for key in path[:-1]:
        at = at[key]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("kind",), "crenel-ceilings", "expected kind crenel-rates"),
        (("format",), 2, "expected format 1"),
        (("device",), "", "expected device, the name of a card"),
        (("device",), 7, "expected device, the name of a card"),
        (("rates",), [], "expected rates of l2, l2_write, dram_read"),
        (("rates", "dram"), None, "expected rates of l2"),
        (("rates", "speed"), {"value": 1.0}, "expected rates of l2"),
        (("rates", "launch"), 3.0, "rates.launch.value, a positive number, found None"),
        (("rates", "launch", "value"), 0, "rates.launch.value, a positive number, found 0"),
        (("rates", "launch", "value"), "fast", "a positive number, found 'fast'"),
        (("rates", "launch", "value"), True, "a positive number, found True"),
        (("rates", "launch", "value"), float("nan"), "a positive number, found nan"),
        (("rates", "l2", "by_working_set"), None, "pairs of bytes and a rate"),
        (("rates", "l2", "by_working_set"), [[1, 2, 3]], "pairs of bytes and a rate"),
        (("rates", "l2", "by_working_set"), [[2, 9.0], [1, 8.0]], "growing working sets and falling rates"),
        (("rates", "l2", "by_working_set"), [[1, 8.0], [2, 9.0]], "growing working sets and falling rates"),
        (("rates", "l2", "by_working_set"), [[1, 8.0]], "from rates.l2 down to no less than rates.dram"),
    ],
)
def test_what_is_no_ceilings_is_refused(tmp_path, document, path, value, said):
    with pytest.raises(crenel.SerializationError, match=said) as caught:
        analyze.load_ceilings(stored(tmp_path, _changed(document, path, value)))
    assert caught.value.fields["file"].endswith("rates.json")


def test_what_is_no_json_is_refused(tmp_path):
    for text in ("", "[]", "{", "rates", "[" * 100_000):
        with pytest.raises(crenel.SerializationError, match="expected JSON of kind crenel-rates"):
            analyze.load_ceilings(stored(tmp_path, text))
    with pytest.raises(crenel.SerializationError, match="expected at most"):
        analyze.load_ceilings(stored(tmp_path, " " * (ceilings.MOST_BYTES + 1)))
    with pytest.raises(FileError):
        analyze.load_ceilings(tmp_path / "nothing.json")


@pytest.mark.parametrize(
    ("of", "description", "same"),
    [
        ("NVIDIA H200", "NVIDIA H200, compute capability 9.0, 139 GiB", True),
        (
            "NVIDIA H200",
            "model of an NVIDIA H200 that executes nothing, compute capability 9.0, 139 GiB",
            True,
        ),
        ("NVIDIA H100 80GB HBM3", "model of an NVIDIA H100 that executes nothing, 79 GiB", True),
        ("NVIDIA A100-SXM4-80GB", "model of an NVIDIA A100 that executes nothing, 74 GiB", True),
        ("NVIDIA H200", "2 parts that share the limbs of every polynomial, each: NVIDIA H200, 139 GiB", True),
        ("NVIDIA H200", "NVIDIA H100 80GB HBM3, compute capability 9.0, 79 GiB", False),
        ("NVIDIA H200", "NVIDIA GH200 480GB, compute capability 9.0, 95 GiB", False),
        ("NVIDIA H20", "NVIDIA H200, compute capability 9.0, 139 GiB", False),
    ],
)
def test_another_card_is_told(of, description, same):
    rates = analyze.load_ceilings()
    rates = ceilings.Ceilings(**{**vars(rates), "device": of})
    text = rates.warning(description)
    assert (text is None) == same
    if text is not None:
        assert of in text and ceilings.card_of(description) in text


RUN = ["analyze", "toy-leveled-n13-s28", "--operation", "hadd"]


def test_analyze_takes_them_and_says_whose_they_are(tmp_path, document, dry, capsys):
    path, out = stored(tmp_path, document), tmp_path / "out.json"
    assert main([*RUN, "--json", str(out)]) == 0
    told = capsys.readouterr()
    assert "ceilings of one NVIDIA H200" in told.out and "warning" not in told.err
    first = json.loads(out.read_text())
    out.unlink()
    assert main([*RUN, "--ceilings", str(path), "--json", str(out)]) == 0
    told = capsys.readouterr()
    assert "ceilings of one NVIDIA B200" in told.out
    assert "warning: the device is NVIDIA H200, the ceilings are of NVIDIA B200" in told.err
    found = json.loads(out.read_text())
    assert found["ceilings_of"] == "NVIDIA B200" and found["ceilings"] == document["rates"]
    assert found["total"]["bytes"] == first["total"]["bytes"]
    assert found["total"]["l2_time"] != first["total"]["l2_time"]
    assert main([*RUN, "--device", "cuda:dry-b200", "--ceilings", str(path)]) == 0
    assert "warning" not in capsys.readouterr().err
    assert main([*RUN, "--device", "cuda:dry-a100", "--sweep", "--batches", "1", "--steps", "2"]) == 0
    told = capsys.readouterr()
    assert "At the ceilings of one NVIDIA H200." in told.out and "the device is NVIDIA A100" in told.err


def test_a_wrong_file_ends_before_anything_is_made(tmp_path, dry, capsys):
    path = stored(tmp_path, "{}")
    for words in (RUN, ["bench", "ablation", "--device", "cuda:dry"]):
        assert main([*words, "--ceilings", str(path)]) not in (0, None)
        assert "expected kind crenel-rates" in capsys.readouterr().err
