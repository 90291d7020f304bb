"""What is compiled into the wheel besides this project's own sources, as a CycloneDX document.

Shared libraries that are copied into the wheel afterwards are in the document that auditwheel adds. What the
wheel needs at run time from the index is in its own metadata.
"""

from __future__ import annotations

import re
import uuid
from datetime import datetime, timezone
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from runner.shell import ROOT

CONSTRAINTS = ROOT / "requirements" / "constraints.txt"
ROBIN_MAP = "ext/robin_map/include/tsl/robin_growth_policy.h"  # of the package nanobind


def pinned(package: str) -> str:
    """Its version in requirements/constraints.txt."""
    found = re.search(rf"^{re.escape(package)}==(\S+)", CONSTRAINTS.read_text(encoding="utf-8"), re.MULTILINE)
    if not found:
        raise ValueError(f"requirements/constraints.txt has no version of {package}")
    return found[1]


def robin_map(nanobind: Path) -> str:
    """Version of the hash table that nanobind's sources have with them."""
    text = (nanobind / ROBIN_MAP).read_text(encoding="utf-8")
    return ".".join(re.findall(r"#define TSL_RH_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))


def compiled(nanobind: Path, cuda: str) -> list[tuple[str, str, str, str, PackageURL]]:
    """Name, version, what it is for, licence, address of everything that is compiled in."""
    binding, table = pinned("nanobind"), robin_map(nanobind)
    parts = [
        ("nanobind", binding, "bindings", "BSD-3-Clause", PackageURL("pypi", None, "nanobind", binding)),
        ("robin-map", table, "hash table", "MIT", PackageURL("github", "Tessil", "robin-map", table)),
    ]
    if cuda:
        address = PackageURL("generic", "nvidia", "cuda-runtime", cuda)
        parts.append(("cuda-runtime", cuda, "linked statically", "LicenseRef-NVIDIA-CUDA-EULA", address))
    return parts


def document(version: str, commit: str, sdist_sha256: str, epoch: int, nanobind: Path, cuda: str = "") -> str:
    """The document: a function of its arguments, of the pinned versions and of nanobind's sources."""
    licences = LicenseFactory()
    root = Component(
        name="crenel",
        version=version,
        type=ComponentType.LIBRARY,
        licenses=[licences.make_from_string("Apache-2.0")],
        purl=PackageURL("pypi", None, "crenel", version),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sdist_sha256)],
        description="hash: of the source distribution that it was built from",
        bom_ref=f"crenel@{version}",
        properties=[Property(name="crenel:commit", value=commit)],  # `crenel doctor` reads it
    )
    bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"crenel/{version}/{sdist_sha256}/{cuda}"))
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, timezone.utc)
    bom.metadata.component = root
    parts = []
    for name, found, use, licence, address in compiled(nanobind, cuda):
        part = Component(
            name=name,
            version=found,
            type=ComponentType.LIBRARY,
            licenses=[licences.make_from_string(licence)],
            purl=address,
            description=use,
            bom_ref=f"{name}@{found}",
        )
        bom.components.add(part)
        parts.append(part)
    bom.register_dependency(root, parts)
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"
