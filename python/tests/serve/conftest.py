"""One service a test, in a folder of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
for name in ("fastapi", "sqlalchemy", "fsspec", "prometheus_client", "httpx", "uvicorn"):
    pytest.importorskip(name, reason=f"the service needs {name}: pip install 'crenel[serve]'")

from service_world import World, quiet  # noqa: E402

from crenel.serve.settings import Settings  # noqa: E402


@pytest.fixture
def world(tmp_path: Path):
    quiet()
    made = World(tmp_path, Settings(data=str(tmp_path / "data"), allow_insecure=True, min_free_bytes=0))
    yield made
    made.close()
