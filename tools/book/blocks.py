"""What pages ask for by `<!-- book: name -->`: tables and drawings made when the site is built."""

from __future__ import annotations

import re
from collections.abc import Callable

from book import beside, bridge, flow, layers, peers, pictures, reach, wheels

MARK = re.compile(r"^<!-- book: ([\w.-]+) -->$", re.MULTILINE)
BLOCKS: dict[str, Callable[[], str]] = {
    "reached": reach.reached,
    "layers": layers.picture,
    "flow.bootstrap": flow.bootstrap,
    "wheels": wheels.sizes,
    "bridge.budget": bridge.budget,
    "bridge.noise": bridge.noise,
    "bridge.path": bridge.path,
    "bridge.times": bridge.times,
    "peers.gpu-bootstraps": peers.gpu_bootstraps,
    "peers.gpu-operations": peers.gpu_operations,
    "peers.gpu-gates": peers.gpu_gates,
    "peers.gpu-latency": peers.gpu_latency,
    "peers.processors": peers.processors,
    "peers.operations": beside.operations,
    "peers.workloads": beside.workloads,
    "peers.integers": beside.integers,
    "peers.features": beside.features,
    "picture.roofline": pictures.roofline,
    "picture.timeline": pictures.timeline,
    "picture.memory": pictures.memory,
    "picture.gpus": pictures.gpus,
    "picture.errors": pictures.errors,
    "picture.noise": pictures.noise,
    "picture.stated": pictures.stated,
    "picture.area": pictures.area,
}


def filled(page: str, where: str = "") -> str:
    """The Markdown with what its marks name; a name that is not there is an error."""

    def block(match: re.Match[str]) -> str:
        make = BLOCKS.get(match[1])
        if make is None:
            raise ValueError(f"{where}: no block {match[1]!r}; there are {', '.join(sorted(BLOCKS))}")
        return make().strip()

    return MARK.sub(block, page)
