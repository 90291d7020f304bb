"""What is written of the service is what it is: settings, routes, the OpenAPI document."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from service_world import World

from crenel.serve.schemas import JobModel, KeyModel, Limits, Problem, ProgramModel
from crenel.serve.settings import Settings

DOCS = Path(__file__).resolve().parents[3] / "docs"
UPDATE = os.environ.get("CRENEL_UPDATE_DOCS") == "1"


def test_the_table_of_settings():
    page = DOCS / "guide/serve.md"
    text = page.read_text()
    head, rest = text.split("<!-- settings -->\n")
    written, tail = rest.split("<!-- /settings -->")
    wanted = Settings.table() + "\n"
    if UPDATE:
        page.write_text(f"{head}<!-- settings -->\n{wanted}<!-- /settings -->{tail}")
    else:
        assert written == wanted, "CRENEL_UPDATE_DOCS=1 writes it"


def measured() -> str:
    """The rows of the guide, from bench/results/service-*.json."""
    rows = ["| Run | Result | File |", "|---|---|---|"]
    for file in sorted((DOCS.parent / "bench/results").glob("service-*.json")):
        document = json.loads(file.read_text())
        rows.append(
            f"| {_rows(document['suite'], document['settings'], document['results'])} | `{file.name}` |"
        )
    return "\n".join(rows) + "\n"


def _rows(suite: str, given: dict, found: dict) -> str:
    if suite == "service-upload":
        equal = "equal hash" if found["equal_hash"] else "ANOTHER HASH"
        return (
            f"{found['bytes'] / 2**30:g} GiB of keys, connection cut {found['cuts']} times | {equal}, "
            f"{found['seconds']:g} s, {found['sent_again_bytes']} bytes again"
        )
    if suite == "service-kills":
        return (
            f"{found['accepted']} requests at once, engine {given['engine']}, worker killed every "
            f"{given['every']:g} s ({found['kills']} times) | {found['right']} right, {found['wrong']} "
            f"wrong, "
            f"{sum(found['errors'].values())} errors, {found['jobs_in_database']} jobs, "
            f"{found['began_more_than_once']} began again; {found['seconds']:g} s"
        )
    if suite == "service-hostile":
        grown = sum(found["resident_bytes_after"].values()) - sum(found["resident_bytes_before"].values())
        return (
            f"{found['requests']} hostile requests, {found['slow_connections']} slow connections | "
            f"{found['errors_500']} answers of 500, {found['leaks']} leaks, memory + {grown / 2**20:.1f} MiB"
        )
    return (
        f"{given['tenants']} tenants, keys of {given['resident']} resident, {given['params']}, "
        f"{given['batch']} "
        f"samples a job | in turn, resident: p50 {found['resident']['p50_ms']:g} ms, p99 "
        f"{found['resident']['p99_ms']:g} ms; all in turn: {found['all_in_turn']['p50_ms']:g}, "
        f"{found['all_in_turn']['p99_ms']:g} ms; queue full, resident: "
        f"{found['piped_resident']['samples_a_second']:g} samples a second, "
        f"{found['piped_resident']['share_of_the_library']:.0%} of the library"
    )


def test_the_table_of_measurements():
    page = DOCS / "guide/serve.md"
    head, rest = page.read_text().split("<!-- measured -->\n")
    written, tail = rest.split("<!-- /measured -->")
    if UPDATE:
        page.write_text(f"{head}<!-- measured -->\n{measured()}<!-- /measured -->{tail}")
    else:
        assert written == measured(), "CRENEL_UPDATE_DOCS=1 writes it"


def test_the_openapi_document(world: World):
    """Versions of FastAPI write descriptions differently; routes, parameters and models are ours."""
    found = world.http.get("/openapi.json").json()
    page = DOCS / "reference/openapi.json"
    if UPDATE:
        page.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    assert json.loads(page.read_text()) == found, "CRENEL_UPDATE_DOCS=1 writes it"


def test_every_route_and_member_is_in_the_protocol(world: World):
    text = (DOCS / "reference/service.md").read_text()
    for path, verbs in world.http.get("/openapi.json").json()["paths"].items():
        for verb in verbs:
            assert f"`{verb.upper()} {path}`" in text, (verb, path)
    for model in (Problem, ProgramModel, KeyModel, JobModel, Limits):
        for name in model.model_fields:
            assert f"`{name}`" in text or f'"{name}"' in text, (model.__name__, name)


def test_every_code_of_the_table_of_errors_is_an_error():
    import crenel.errors

    text = (DOCS / "reference/service.md").read_text()
    rows = re.findall(r"^\| (\d{3}(?:, \d{3})*) \| (.+?) \|", text, re.M)
    assert len(rows) > 10
    for _, codes in rows:
        for code in re.findall(r"`(\w+)`", codes):
            assert issubclass(getattr(crenel.errors, code), crenel.errors.CrenelError)
