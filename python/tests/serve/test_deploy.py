"""deploy/ by what can be checked without a container runtime and a cluster."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from needed import needs

import crenel.serve
from crenel.serve.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
yaml = needs("service", "yaml")


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


def test_kubernetes_own_schema_takes_its_pods():
    """RayService is KubeRay's kind, of which no package has a schema; what its pods are is Kubernetes'."""
    validate = needs("service", "kubernetes_validate")
    cluster = manifest()["spec"]["rayClusterConfig"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, **group["template"]}
        version = validate.latest_version()
        validate.validate(pod, version, strict=True)
        wrong = {**pod, "spec": {**pod["spec"], "container": []}}
        with pytest.raises(validate.ValidationError):
            validate.validate(wrong, version, strict=True)


def test_the_manifest_is_tidy():
    lint = needs("service", "yamllint.linter")
    from yamllint.config import YamlLintConfig

    rules = "extends: default\nrules: {line-length: {max: 120}, braces: {max-spaces-inside: 1}}"
    text = (ROOT / "deploy/rayservice.yaml").read_text()
    assert [str(p) for p in lint.run(text, YamlLintConfig(rules))] == []
