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
