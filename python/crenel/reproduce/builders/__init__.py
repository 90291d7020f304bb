"""How each item's side of ours is found in the records: a module a paper. Importing this registers all."""

from __future__ import annotations

from crenel.reproduce.builders import bolt, cheddar, fhecore, theodosian

__all__ = ["bolt", "cheddar", "fhecore", "theodosian"]
