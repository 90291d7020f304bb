"""What Prometheus is shown, and what the example of alerts asks of it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from service_world import World, made

from crenel.serve import observe

ALERTS = Path(__file__).resolve().parents[3] / "deploy/alerts.yaml"


def _shown(world: World) -> tuple[dict[str, str], dict[str, list[tuple[dict[str, str], float]]]]:
    """Kinds by family, and samples by name."""
    answer = world.http.get("/metrics", headers={"Authorization": "Bearer m"})
    assert answer.status_code == 200
    families = list(text_string_to_metric_families(answer.text))
    samples: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in families:
        for s in family.samples:
            samples.setdefault(s.name, []).append((dict(s.labels), s.value))
    return {family.name: family.type for family in families}, samples


def _busy(world: World) -> World:
    world.restart(metrics_token="m")
    m, key = made(), world.ready(made().keys[0])
    for _ in range(2):
        assert world.submit(m.sent[0], key).status_code == 202
    world.work()
    world.worker()._beat()
    return world


def test_what_only_grows_is_a_counter(world: World):
    kinds, samples = _shown(_busy(world))
    for name in (
        "keys_hits",
        "keys_misses",
        "keys_evictions",
        "worker_busy_seconds",
        "worker_jobs",
        "requests",
    ):
        assert kinds[f"crenel_{name}"] == "counter", name
    for name in ("keys_bytes", "keys_entries", "device_memory_bytes", "jobs", "workers"):
        assert kinds[f"crenel_{name}"] == "gauge", name
    assert {labels["state"]: n for labels, n in samples["crenel_worker_jobs_total"]} == {
        "done": 2,
        "failed": 0,
    }
    ((labels, busy),) = samples["crenel_worker_busy_seconds_total"]
    assert labels["device"] == "cpu" and 0 < busy < 60
    memory = {labels["kind"]: n for labels, n in samples["crenel_device_memory_bytes"]}
    assert memory["held"] >= made().servable.key_memory and set(memory) == {"held", "used", "total"}


def test_a_worker_of_before_is_shown():
    """It says less, and shares the database while versions change."""
    counts = {"done": 3, "failed": 1, "checked": 0, "seconds": {}, "buckets": {}}
    found = observe._of_workers([{"id": "0123456789", "device": "cpu", "use": {}, "counts": counts}])
    samples = {(s.name, s.labels.get("state")): s.value for family in found for s in family.samples}
    assert samples[("crenel_workers", None)] == 1 and samples[("crenel_worker_jobs_total", "done")] == 3
    assert not any("busy" in name or "memory" in name for name, _ in samples)


def test_the_counters_of_a_server_have_its_name(world: World):
    """Behind one address every answer may be another server's."""
    _, samples = _shown(_busy(world))
    (mine,) = {labels["replica"] for labels, _ in samples["crenel_requests_total"]}
    before = sum(n for _, n in samples["crenel_requests_total"])
    assert all(labels["replica"] == mine for labels, _ in samples["crenel_request_seconds_count"])
    assert all("replica" not in labels for labels, _ in samples["crenel_jobs"] + samples["crenel_keys_bytes"])
    _, again = _shown(world)
    assert sum(n for _, n in again["crenel_requests_total"]) == before + 1
    world.restart()
    _, other = _shown(world)
    assert mine not in {labels["replica"] for labels, _ in other.get("crenel_requests_total", [])}


@pytest.mark.generated
def test_the_table_of_metrics(world: World):
    """Every family that is shown, with its kind, labels and text, as Prometheus is told them."""
    assert _busy(world).http.get("/jobs", headers={"Authorization": "Bearer x"}).status_code == 401
    answer = world.http.get("/metrics", headers={"Authorization": "Bearer m"})
    rows = ["| Metric | Kind | Labels | Is |", "|---|---|---|---|"]
    for family in sorted(text_string_to_metric_families(answer.text), key=lambda f: f.name):
        if family.name.endswith("_created"):
            continue
        assert family.samples and family.documentation, family.name
        labels: dict[str, set[str]] = {}
        for sample in family.samples:
            for label, value in sample.labels.items():
                if label != "le":
                    labels.setdefault(label, set()).add(value)
        listed = [_label(label, values) for label, values in sorted(labels.items())]
        name = f"{family.name}_total" if family.type == "counter" else family.name
        rows.append(f"| `{name}` | {family.type} | {', '.join(listed)} | {family.documentation} |")
    wanted, page = "\n".join(rows) + "\n", ALERTS.parents[1] / "docs/guide/serve.md"
    assert len(rows) > 14
    head, rest = page.read_text().split("<!-- metrics -->\n")
    written, tail = rest.split("<!-- /metrics -->")
    if os.environ.get("CRENEL_UPDATE_DOCS") == "1":
        page.write_text(f"{head}<!-- metrics -->\n{wanted}<!-- /metrics -->{tail}")
    else:
        assert written == wanted, "CRENEL_UPDATE_DOCS=1 writes it"


FIXED = {"kind", "stage", "state", "tier"}
"""Labels whose values are a list that the code has."""


def _label(name: str, values: set[str]) -> str:
    return f"`{name}` ({', '.join(sorted(values))})" if name in FIXED else f"`{name}`"


def test_alerts_ask_for_what_is_shown(world: World):
    """Names, labels and their values; nothing here runs Prometheus."""
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    place = _busy(world).http.get("/jobs", headers={"Authorization": "Bearer x"})
    assert place.status_code == 401  # so that there is a problem to count
    _, samples = _shown(world)
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    for rule in group["rules"]:
        assert (
            set(rule) <= {"alert", "expr", "for", "labels", "annotations"} and rule["annotations"]["summary"]
        )
        assert re.fullmatch(r"\d+m", rule.get("for", "1m")) and rule["labels"]["severity"]
        asked = re.findall(r"(crenel_\w+)(?:\{(\w+)=~?\"[^\"]*\"\})?", rule["expr"])
        assert asked and rule["expr"].count("(") == rule["expr"].count(")")
        for name, label in asked:
            assert name in samples, (rule["alert"], name)
            assert not label or all(label in labels for labels, _ in samples[name]), (rule["alert"], label)
    assert len({rule["alert"] for rule in group["rules"]}) == len(group["rules"]) >= 5
    assert "UNTESTED" in ALERTS.read_text()
