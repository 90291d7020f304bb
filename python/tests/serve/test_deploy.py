"""deploy/ by what can be checked without a container runtime and a cluster."""

from __future__ import annotations

import ast
import fnmatch
import re
from pathlib import Path

import pytest
import sqlalchemy as sql
from fsspec.registry import known_implementations
from needed import needs

import crenel.serve
from crenel.serve.placing import placed
from crenel.serve.settings import Settings

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    tomllib = needs("test", "tomli")

ROOT = Path(__file__).resolve().parents[3]
yaml = needs("service", "yaml")


IMAGES = {"rayservice.yaml": "Dockerfile", "rayservice-gpu.yaml": "Dockerfile.gpu"}


@pytest.fixture(params=sorted(IMAGES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def manifest(name: str) -> dict:
    return yaml.safe_load((ROOT / "deploy" / name).read_text())


def test_the_manifest_has_the_members_that_kuberay_requires(manifest: dict):
    found = manifest
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


def test_its_applications_exist_and_their_settings_are_settings(manifest: dict):
    config = yaml.safe_load(manifest["spec"]["serveConfigV2"])
    for application in config["applications"]:
        module, name = application["import_path"].split(":")
        tree = ast.parse((Path(crenel.serve.__file__).parent / f"{module.rsplit('.', 1)[1]}.py").read_text())
        assert name in {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
        Settings.of(application["args"]["settings"])


def test_rays_own_schema_takes_them(manifest: dict):
    schema = pytest.importorskip("ray.serve.schema", reason="needs Ray: pip install 'crenel[serve]'")
    schema.ServeDeploySchema.model_validate(yaml.safe_load(manifest["spec"]["serveConfigV2"]))


def test_the_image_and_the_manifest_have_one_version_of_ray(name: str, manifest: dict):
    images = re.findall(
        r"^FROM rayproject/ray:([\d.]+)-py", (ROOT / "deploy" / IMAGES[name]).read_text(), re.M
    )
    assert set(images) == {manifest["spec"]["rayClusterConfig"]["rayVersion"]}
    for file in (IMAGES[name], name):
        assert "UNTESTED" in (ROOT / "deploy" / file).read_text()


def test_gpus_are_those_of_the_pods():
    """As many as workers are placed on, and none where nothing computes."""
    spec = yaml.safe_load((ROOT / "deploy/rayservice-gpu.yaml").read_text())["spec"]
    cluster, count = spec["rayClusterConfig"], 0
    for group in cluster["workerGroupSpecs"]:
        (container,) = group["template"]["spec"]["containers"]
        assert container["resources"]["limits"] == container["resources"]["requests"]
        count += group["replicas"] * int(container["resources"]["limits"]["nvidia.com/gpu"])
    for application in yaml.safe_load(spec["serveConfigV2"])["applications"]:
        found = application["args"]
        assert (found["device"], found["gpus"]) == ("cuda", count)
        place = placed(found["device"], found["workers"], found["gpus"])
        assert place.replicas == count * found["workers"]
    (head,) = cluster["headGroupSpec"]["template"]["spec"]["containers"]
    assert "nvidia.com/gpu" not in head["resources"]["limits"]


def test_the_image_for_gpus_has_files_that_are_there():
    text = (ROOT / "deploy/Dockerfile.gpu").read_text()
    for found in re.findall(r"(?:/src/|COPY )((?:requirements|tools)/[\w.]+)", text):
        assert (ROOT / found).is_file(), found
    options = (ROOT / "cmake/Options.cmake").read_text()
    for define in re.findall(r"-Ccmake\.define\.(CRENEL_\w+)", text):
        assert f"set({define} " in options, define


def test_kubernetes_own_schema_takes_its_pods(manifest: dict):
    """RayService is KubeRay's kind, of which no package has a schema; what its pods are is Kubernetes'."""
    validate = needs("service", "kubernetes_validate")
    cluster = manifest["spec"]["rayClusterConfig"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, **group["template"]}
        version = validate.latest_version()
        validate.validate(pod, version, strict=True)
        wrong = {**pod, "spec": {**pod["spec"], "container": []}}
        with pytest.raises(validate.ValidationError):
            validate.validate(wrong, version, strict=True)


@pytest.mark.parametrize("file", [*sorted(IMAGES), "alerts.yaml"])
def test_the_manifest_is_tidy(file: str):
    lint = needs("service", "yamllint.linter")
    from yamllint.config import YamlLintConfig

    rules = "extends: default\nrules: {line-length: {max: 120}, braces: {max-spaces-inside: 1}}"
    text = (ROOT / "deploy" / file).read_text()
    assert [str(p) for p in lint.run(text, YamlLintConfig(rules))] == []


def _extras(image: str) -> set[str]:
    """That an image installs."""
    (found,) = re.findall(r"\[([\w,]+)\][\"']", (ROOT / "deploy" / image).read_text())
    return set(found.split(","))


def _distributions() -> dict[str, list[str]]:
    """Of each extra of the package."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return {extra: [re.split(r"[\[><=]", name)[0] for name in names] for extra, names in table.items()}


def test_the_image_has_the_drivers_of_the_manifests_urls(name: str, manifest: dict):
    known, chosen = _distributions(), _extras(IMAGES[name])
    assert {"serve", "postgres", "s3"} == chosen <= set(known)
    brought = {d for extra in chosen for d in known[extra]}
    pins = (ROOT / "requirements/constraints.txt").read_text()
    assert all(re.search(rf"^{d}==", pins, re.M) for d in brought - {"ray"})
    for application in yaml.safe_load(manifest["spec"]["serveConfigV2"])["applications"]:
        settings = Settings.of(application["args"]["settings"])
        scheme = settings.data.partition("://")[0]
        module = known_implementations[scheme]["class"].partition(".")[0]
        assert module in brought, scheme
        backend, driver = sql.make_url(settings.database).drivername.split("+")
        assert (backend, driver) == ("postgresql", "psycopg") and driver in brought
    assert not {d for extra in chosen - {"postgres", "s3"} for d in known[extra]} & {"psycopg", "s3fs"}


def test_what_images_need_is_not_ignored_and_secrets_are():
    lines = [x for x in (ROOT / ".dockerignore").read_text().splitlines() if x and not x.startswith("#")]

    def ignored(path: str) -> bool:
        parts = path.split("/")
        heads = ["/".join(parts[: k + 1]) for k in range(len(parts))]
        return any(
            fnmatch.fnmatch(head, line) or (line.startswith("**/") and fnmatch.fnmatch(parts[k], line[3:]))
            for line in lines
            for k, head in enumerate(heads)
        )

    for needed in (
        "pyproject.toml", "VERSION", "CMakeLists.txt", "README.md", "LICENSE", "src/core/types.h",
        "cmake/Options.cmake", "requirements/constraints.txt", "requirements/cuda.txt",
        "tools/cuda_toolchain.py", "python/crenel/serve/keys.py", "python/crenel/serve/app.py",
        "params/x.json", "fhecore/model/x.h",
        "bench/CMakeLists.txt", "bench/harness/digest.cpp",
    ):  # fmt: skip
        assert not ignored(needed), needed
    for kept_out in (
        ".git/config", "build/main/x", ".venv/bin/python", "crenel-service/service.sqlite", "alice.key",
        "deep/alice.key", "alice.key.0123.keys", "x/__pycache__/y.pyc", ".env",
    ):  # fmt: skip
        assert ignored(kept_out), kept_out
