"""schemathesis against the application: the OpenAPI document says what is answered, whatever is asked."""

from __future__ import annotations

from needed import needs
from service_world import TUS, World, made

schemathesis = needs("service", "schemathesis")
import hypothesis  # noqa: E402
from schemathesis import checks  # noqa: E402
from schemathesis.specs.openapi import checks as more  # noqa: E402

CHECKS = (
    checks.not_a_server_error,
    more.status_code_conformance,
    more.content_type_conformance,
    more.response_schema_conformance,
)


def test_the_application_conforms_to_its_document(world: World):
    world.restart(
        requests_per_second=1e5, burst=10**6, refusals_per_second=1e5, wait_seconds=0.05, jobs=10**6
    )
    key = world.ready(made().keys[0])
    world.submit(made().sent[0], key)
    world.work()
    schema = schemathesis.openapi.from_asgi("/openapi.json", world.http.app)
    headers = {"Authorization": f"Bearer {world.tokens['alice']}"}
    tried = [
        _conforms(found.ok(), headers)
        for found in schema.get_all_operations()
        if found.ok().path not in ("/readyz", "/jobs/{job}/events")  # 503 without a worker; a stream
    ]
    print("requests", sum(tried))


def _conforms(operation, headers: dict[str, str]) -> int:
    given, tried = headers | (TUS if "/uploads" in operation.path else {}), []

    @hypothesis.settings(max_examples=15, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(case=operation.as_strategy())
    def conforms(case):
        tried.append(1)
        case.call_and_validate(headers=given, checks=CHECKS)

    conforms()
    return len(tried)
