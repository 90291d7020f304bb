"""Where packages of the service are missing this skips; other tests of the folder are not collected then."""

from __future__ import annotations

import pytest

from .conftest import NEEDED


@pytest.mark.parametrize("name", NEEDED)
def test_a_package_of_the_service(name):
    pytest.importorskip(
        name, reason=f"no test of the service runs: {name} is missing, pip install 'crenel[serve]'"
    )
