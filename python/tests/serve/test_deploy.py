"""deploy/ by what can be checked without a container runtime and a cluster."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import crenel.serve
from crenel.serve.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
yaml = pytest.importorskip("yaml", reason="PyYAML comes with Ray")


def manifest() -> dict:
    return yaml.safe_load((ROOT / "deploy/rayservice.yaml").read_text())


def test_the_manifest_has_the_members_that_kuberay_requires():
    found = manifest()
    assert (found["apiVersion"], found["kind"]) == ("ray.io/v1", "RayService")
    cluster = found["spec"]["rayClusterConfig"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for group in groups:
        assert isinstance(group["rayStartParams"], dict)
        (container,) = group["template"]["spec"]["containers"]
        assert {"name", "image", "resources"} <= set(container)
        mounted = {m["name"] for m in container["volumeMounts"]}
        assert mounted == {v["name"] for v in group["template"]["spec"]["volumes"]}
    for group in cluster["workerGroupSpecs"]:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"] and group["groupName"]


def test_its_applications_exist_and_their_settings_are_settings():
    config = yaml.safe_load(manifest()["spec"]["serveConfigV2"])
    for application in config["applications"]:
        module, name = application["import_path"].split(":")
        tree = ast.parse((Path(crenel.serve.__file__).parent / f"{module.rsplit('.', 1)[1]}.py").read_text())
        assert name in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
        Settings.of(application["args"]["settings"])


def test_rays_own_schema_takes_them():
    schema = pytest.importorskip("ray.serve.schema", reason="needs Ray: pip install 'crenel[serve]'")
    schema.ServeDeploySchema.model_validate(yaml.safe_load(manifest()["spec"]["serveConfigV2"]))


def test_the_image_and_the_manifest_have_one_version_of_ray():
    image = re.search(r"^FROM rayproject/ray:([\d.]+)-py", (ROOT / "deploy/Dockerfile").read_text(), re.M)
    assert image and image[1] == manifest()["spec"]["rayClusterConfig"]["rayVersion"]
    for name in ("Dockerfile", "rayservice.yaml"):
        assert "UNTESTED" in (ROOT / "deploy" / name).read_text()
