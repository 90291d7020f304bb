"""A cluster that RAY_ADDRESS names and that is not there: said at once, without Ray."""

import socket
import time

import pytest

from crenel import joining
from crenel.errors import ParameterError, UnavailableError


class Ray:
    def __init__(self, error=None):
        self.error, self.calls = error, []

    def init(self, **options):
        self.calls.append(options)
        if self.error:
            raise self.error


@pytest.mark.parametrize(
    "address", ["nonsense", "host", "host:", ":6379", "host:x", "host:0", "host:65536", "ray://x", "h:-1"]
)
def test_no_address(monkeypatch, address):
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(ParameterError, match="expected HOST:PORT") as error:
        joining.join(Ray())
    assert error.value.fields["value"] == address


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_nobody_answers(monkeypatch, scheme):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("RAY_ADDRESS", f"{scheme}127.0.0.1:{port}")
        ray = Ray()
        joining.join(ray, log_to_driver=True)
        assert ray.calls == [{"log_to_driver": True}]
        for error in (ConnectionError("x"), ValueError("x"), RuntimeError("x")):
            with pytest.raises(UnavailableError, match=type(error).__name__):
                joining.join(Ray(error))
    begin, ray = time.monotonic(), Ray()
    with pytest.raises(UnavailableError, match=f"no Ray cluster answers at RAY_ADDRESS '{scheme}127.0.0.1:"):
        joining.join(ray)
    assert not ray.calls and time.monotonic() - begin < joining.ANSWER_S + 5


def test_named(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert not joining.named()
    monkeypatch.setenv("RAY_ADDRESS", "")
    assert not joining.named()
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    assert joining.named()
    ray = Ray()
    joining.join(ray)
    assert ray.calls == [{}]
