"""One service a test, in a folder of its own."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))
NEEDED = ("fastapi", "sqlalchemy", "fsspec", "prometheus_client", "httpx", "uvicorn")

if any(find_spec(name) is None for name in NEEDED):  # test_installed.py skips, with the reason
    collect_ignore = [file.name for file in FOLDER.glob("test_*.py") if file.name != "test_installed.py"]


@pytest.fixture
def world(tmp_path: Path):
    from service_world import World, quiet

    from crenel.serve.settings import Settings

    quiet()
    made = World(tmp_path, Settings(data=str(tmp_path / "data"), allow_insecure=True, min_free_bytes=0))
    yield made
    made.close()
