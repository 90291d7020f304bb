"""What is written of the service is what it is: settings, routes, the OpenAPI document."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from service_world import World

from crenel.serve.schemas import JobModel, KeyModel, Limits, Problem, ProgramModel
from crenel.serve.settings import Settings

DOCS = Path(__file__).resolve().parents[3] / "docs"
UPDATE = os.environ.get("CRENEL_UPDATE_DOCS") == "1"


@pytest.mark.generated
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
    if suite == "service-throughput":
        cpu, full = found["cpu_ms_a_request"], found["queue_full"]
        shares = [f["share_of_the_library"] for f in (full, found)]
        waits, comes = (f"{s['median']:.0%} ({s['least']:.0%} to {s['most']:.0%})" for s in shares)
        free, after = "", ""
        if "fetched_afterwards" in found:
            share = found["fetched_afterwards"]["share_of_the_library"]
            after = (
                f", {share['median']:.0%} ({share['least']:.0%} to {share['most']:.0%}) where clients fetch "
                "results when all are done"
            )
        if "free" in found:
            share = found["free"]["share_of_the_library"]
            free = (
                f", {share['median']:.0%} ({share['least']:.0%} to {share['most']:.0%}) where the worker may "
                "use both cores, still with one thread that computes"
            )
        return (
            f"{given['params']}, {given['batch']} samples a job, keys resident, worker and library alone on "
            f"one core each with one thread, {len(found['rounds'])} rounds of {given['jobs']} jobs | of the "
            f"library's samples a second, median: {waits} where all jobs wait already{after}, {comes} while "
            f"they come{free}. CPU a request: library {cpu['library']:g} ms, worker "
            f"{full['worker_cpu_ms']:g} and {cpu['worker']:g}, server {cpu['server']:g}, client "
            f"{cpu['client']:g}"
        )
    if suite == "service-stages":
        cpu, share = found["cpu_ms_a_request"], found["library_over_worker_cpu"]
        beside = ", ".join(f"{name} {ms:.2f}" for name, ms in found["beside_ms"].items())
        return (
            f"{given['params']}, {given['batch']} samples a job, worker by stages, {given['rounds']} rounds "
            f"of {given['jobs']} jobs | CPU a request: library {cpu['library']:.2f} ms, worker "
            f"{cpu['worker']:.2f}, library over worker {share['median']:.3f} ({share['least']:.3f} to "
            f"{share['most']:.3f}); beside computing: {beside}"
        )
    if suite == "service-hostile":
        grown = sum(found["resident_bytes_after"].values()) - sum(found["resident_bytes_before"].values())
        return (
            f"{found['requests']} hostile requests, {found['slow_connections']} slow connections | "
            f"{found['errors_500']} answers of 500, {found['leaks']} leaks, memory + {grown / 2**20:.1f} MiB"
        )
    return _of_tenants(given, found)


def _of_tenants(given: dict, found: dict) -> str:
    one, all_of_them, full = found["resident"], found["all_in_turn"], found["full_resident"]
    share, network = full["share_of_the_library"], capacity().NETWORKS
    return (
        f"{given['tenants']} tenants, keys of {given['resident']} resident, {network[given['network']]}, "
        f"{given['params']}, {given['batch']} samples a job, {found['device']} | one after the other, "
        f"resident: p50 {one['p50_ms']:g} ms, p99 {one['p99_ms']:g} ms; all in turn: "
        f"{all_of_them['p50_ms']:g}, {all_of_them['p99_ms']:g} ms, of which keys up to "
        f"{all_of_them['keys_ms']:g}; {full['jobs']} jobs that wait already, resident, until "
        f"the last is done: "
        f"{full['samples_a_second']:g} samples a second, {share['median']:.0%} ({share['least']:.0%} to "
        f"{share['most']:.0%}) of the library"
    )


@pytest.mark.generated
def test_the_table_of_measurements():
    page = DOCS / "guide/serve.md"
    head, rest = page.read_text().split("<!-- measured -->\n")
    written, tail = rest.split("<!-- /measured -->")
    if UPDATE:
        page.write_text(f"{head}<!-- measured -->\n{measured()}<!-- /measured -->{tail}")
    else:
        assert written == measured(), "CRENEL_UPDATE_DOCS=1 writes it"


def capacity() -> ModuleType:
    """The bench's module: it reads records, and nothing of it is typed."""
    spec = spec_from_file_location("serve_capacity", DOCS.parent / "bench/service/capacity.py")
    assert spec is not None and spec.loader is not None
    found = module_from_spec(spec)
    sys.modules[spec.name] = found  # dataclasses look for it there
    spec.loader.exec_module(found)
    return found


@pytest.mark.generated
def test_the_capacity_page():
    page = DOCS / "guide/serve.md"
    head, rest = page.read_text().split("<!-- capacity -->\n")
    written, tail = rest.split("<!-- /capacity -->")
    wanted = capacity().page()
    if UPDATE:
        page.write_text(f"{head}<!-- capacity -->\n{wanted}<!-- /capacity -->{tail}")
    else:
        assert written == wanted, "CRENEL_UPDATE_DOCS=1 writes it"


def test_capacity_takes_the_newest_and_prices():
    found = capacity()
    rows = found.costs()
    assert len({(c.program, c.device, c.samples) for c in rows}) == len(rows) > 5
    resnet = next(c for c in rows if c.gpu and c.program.startswith("ResNet-20"))
    assert math.isclose(resnet.money(3.6, 9.0), resnet.device_ms / 1e6)  # an hour has 3.6 million of them
    served = next(c for c in rows if not c.gpu)
    assert math.isclose(served.money(0.0, 3.6), (served.device_ms + served.server_ms) / 1e6)
    page, (price, core) = found.page(), found.EXAMPLE
    for cost in rows:
        (line,) = [x for x in page.splitlines() if f"`{cost.file}`" in x and f"| {cost.program} |" in x]
        assert line.endswith(f"| {1e6 * cost.money(price, core):,.2f} |")
    assert f"{price:g} of a GPU's hour" in page and "example" in page
    table = found.table(price=2.0)
    assert "A million requests" in table and table.count("no price given") == sum(not c.gpu for c in rows)


@pytest.mark.generated
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
