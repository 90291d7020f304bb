"""Tests that need further packages: skipped, or failures where CRENEL_REQUIRE asks for them."""

from __future__ import annotations

from pathlib import Path

import needed
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def runner(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from runner import env, extras, shell

    monkeypatch.setattr(shell, "remembered", [])
    return env, extras, shell


@pytest.mark.parametrize(
    ("group", "required", "fails"),
    [
        ("service", "", False),
        ("service", "cuda,packages", True),
        ("service", "service", True),
        ("service", "web,servic", False),
        ("web", "packages", False),  # ./run test does not install it
        ("web", "web", True),
    ],
)
def test_a_package_that_is_missing(monkeypatch, group, required, fails):
    monkeypatch.setenv("CRENEL_REQUIRE", required)
    wanted = pytest.fail.Exception if fails else pytest.skip.Exception
    with pytest.raises(wanted, match=f"no crenel_absent: pip install -r requirements/{group}.txt"):
        needed.needs(group, "json", "crenel_absent.part")
    assert needed.needs(group, "json.decoder", "json").JSONDecoder


def test_groups_are_those_that_are_installed(runner):
    env, extras, _ = runner
    assert set(needed.INSTALLED) == {"build", "demo", "test", *extras.GROUPS}
    for group in needed.INSTALLED:
        assert env._required_names(group)


@pytest.mark.parametrize("server", [False, True])
@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("offline", [False, True])
def test_what_is_installed(runner, monkeypatch, tmp_path, offline, required, server):
    env, extras, shell = runner
    asked = []
    monkeypatch.setattr(env, "OFFLINE", offline)
    monkeypatch.setattr(env, "pip_install", lambda *groups: asked.extend(groups))
    monkeypatch.setattr(env, "apt_install", lambda packages, _: asked.extend(packages))
    monkeypatch.setattr(extras, "POSTGRESQL", tmp_path)
    monkeypatch.setenv("CRENEL_REQUIRE", "tidy,packages" if required else "tidy")
    if server:
        (tmp_path / "15/bin").mkdir(parents=True)
        (tmp_path / "15/bin/initdb").touch()
    extras.install()
    groups = [] if offline and not required else [*extras.GROUPS]
    assert asked == groups + (["postgresql"] if required and not server else [])


def test_what_is_left_out_is_told(runner, monkeypatch):
    _, extras, shell = runner
    monkeypatch.setattr(extras, "capture", lambda _: "numpy torch")
    monkeypatch.setattr(extras.shutil, "which", lambda name: "/bin/emcmake" if name == "emcmake" else None)
    extras.tell()
    assert len(shell.remembered) == 1 and "Ray" in shell.remembered[0]
