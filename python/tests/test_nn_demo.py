"""crenel demo nn: agreement, what it shows, refusals, and that a wrong result is a failure."""

import re

import numpy as np
import pytest
from conftest import NEGATIVE_SEED, device_names, open_context, toy
from needed import needs

from crenel import nn
from crenel.cli import main
from crenel.errors import ParameterError

needs("demo", "sklearn")
from crenel.workloads.networks import demo  # noqa: E402


@pytest.mark.parametrize("device", [name for name in device_names() if name != "ref"])
def test_the_demo(device, capsys):
    params = toy("toy-leveled-n14-s40")
    open_context(params, device)  # or skips
    seed = int(np.random.default_rng().integers(1000))
    print("seed", seed)
    assert demo.run(device=device, images=12, seed=seed, params=params) == 0
    out = capsys.readouterr().out
    # Nine of ten digits are read right, whichever are drawn: less than half of 12 once in 20,000 runs.
    assert int(re.search(r"right +(\d+) of 12", out)[1]) >= 6
    assert out.count("what the server sees") == 2 and "INSECURE" in out  # rows of ten


def test_the_command_with_real_parameters(capsys):
    assert main(["demo", "nn", "--device", "cpu", "--images", "2"]) == 0
    out = capsys.readouterr().out
    assert int(re.search(r"about (\d+) bits", out)[1]) >= 128
    shown = out.split("what the server sees")[0].splitlines()
    assert sum(set(line) <= set(demo.SHADES) and line.strip() != "" for line in shown) >= 7


def test_seeds(capsys):
    assert main(["demo", "nn", "--seed", "-1"]) == 2
    err = capsys.readouterr().err
    assert re.search(NEGATIVE_SEED, err)
    seed = (1 << 33) + 1  # beyond what scikit-learn takes
    assert demo.run(device="cpu", images=1, seed=seed, params=toy("toy-leveled-n14-s40")) == 0


def test_a_wrong_result_is_a_failure(monkeypatch, capsys):
    honest = nn.Client.decrypt
    monkeypatch.setattr(nn.Client, "decrypt", lambda *given: honest(*given) + 0.01)
    assert demo.run(device="cpu", images=1, params=toy("toy-leveled-n14-s40")) == 1
    assert "EXCEEDS" in capsys.readouterr().out


@pytest.mark.parametrize("images", [0, -1, 398])
def test_images_that_are_not_there(images):
    with pytest.raises(ParameterError, match="expected 1 to 397"):
        demo.run(device="cpu", images=images)
