"""Parameters of the model: params.toml, replaced by what calibration fitted
(sim/data/calibration-<target>.json)."""

from __future__ import annotations

import json
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
OUTSIDE = ("kernel_cycles", "launch_us")  # of whole kernels: not known to sm_model


class ParamsError(ValueError):
    """A target or parameter that does not exist, or a fit of something that is not to be fitted."""


def everything() -> dict:
    """params.toml."""
    return tomllib.loads((HERE / "params.toml").read_text())


def table(target: str) -> dict[str, dict]:
    """{parameter: {"value", "from", "fit"?}} of a target, its base's entries filled in."""
    targets = everything()
    if target not in targets:
        raise ParamsError(f"target {target!r}: expected one of {sorted(targets)}")
    own = {k: v for k, v in targets[target].items() if isinstance(v, dict)}
    base = targets[target].get("base")
    return {**table(base), **own} if base else own


def start(target: str) -> dict[str, float]:
    """What the model starts from: the values of a target before any fit."""
    return {k: float(v["value"]) for k, v in table(target).items()}


def note(target: str) -> str:
    return everything()[target]["note"]


def calibration(target: str, folder: Path = DATA) -> dict | None:
    """The fit of a target, or of the base that it takes its pipes from; None when nothing was measured."""
    path = folder / f"calibration-{target}.json"
    if path.exists():
        return json.loads(path.read_text())
    base = everything().get(target, {}).get("base")
    return calibration(base, folder) if base else None


def load(target: str, folder: Path = DATA, **overrides: float) -> dict[str, float]:
    """All parameters as numbers. What a target states itself is never replaced by its base's fit."""
    values = start(target)
    fit = calibration(target, folder)
    if fit:
        own = everything()[target]
        own = own if own.get("base") else {}
        for name, value in fit["fitted"].items():
            if name not in values:
                raise ParamsError(f"calibration fits {name!r}, which is no parameter")
            if name not in own:
                values[name] = float(value)
    for name, value in overrides.items():
        if name not in values:
            raise ParamsError(f"{name!r} is no parameter")
        values[name] = float(value)
    return values


def of_engine(values: dict[str, float]) -> dict[str, float]:
    """Those that sm_model takes."""
    return {k: v for k, v in values.items() if k not in OUTSIDE}
