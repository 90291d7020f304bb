"""Where packages of the service are missing this skips; other tests of the folder are not collected then."""

from __future__ import annotations

import pytest
from needed import needs

from .conftest import NEEDED


@pytest.mark.parametrize("name", NEEDED)
def test_a_package_of_the_service(name):
    needs("test", name)
