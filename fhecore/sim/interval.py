"""How far a predicted time may be off: from the errors of whole operations, model against graph replay.

The model's error is known without the unit only. An interval says: with the unit it errs by no more, on
either side, than it was seen to err without it, on some operation. The mean error of kernels is no such
interval: operations lie outside of it (`Errors.within`).
"""

from __future__ import annotations

from dataclasses import dataclass

ENOUGH = 3  # operations


class NoInterval(ValueError):
    """Too few measured operations; the message says how many there are."""


@dataclass(frozen=True)
class Errors:
    """Model / measured - 1 of every measured operation, refused ones too: to leave out would be to pick."""

    by_name: dict[str, float]

    @classmethod
    def of(cls, operations: list[dict]) -> Errors:
        """Of predictions on the GPU that was measured. NoInterval with fewer than 3 measured operations."""
        found = {
            o["name"]: o["base_us"] / o["measured_us"]["graph_us"] - 1
            for o in operations
            if o.get("measured_us")
        }
        if len(found) < ENOUGH:
            raise NoInterval(f"{len(found)} operations measured, expected at least {ENOUGH}")
        return cls(found)

    @property
    def least(self) -> float:
        return min(self.by_name.values())

    @property
    def greatest(self) -> float:
        return max(self.by_name.values())

    def time(self, predicted: float) -> tuple[float, float]:
        """Least and greatest time for a predicted one."""
        return predicted / (1 + self.greatest), predicted / (1 + self.least)

    def speed_up(self, measured: float, predicted: float) -> tuple[float, float]:
        """Of the measured time without the unit over the predicted one with it."""
        shortest, longest = self.time(predicted)
        return measured / longest, measured / shortest

    def left_out(self) -> list[str]:
        """Operations whose measured time lies in the interval of the others' errors. (The two at the ends of
        the range never do.)"""
        inside = []
        for name, error in self.by_name.items():
            others = [e for n, e in self.by_name.items() if n != name]
            if min(others) <= error <= max(others):
                inside.append(name)
        return inside

    def within(self, band: float) -> list[str]:
        """Operations whose error is at most `band` in size."""
        return [name for name, error in self.by_name.items() if abs(error) <= band]

    @property
    def chance(self) -> tuple[int, int]:
        """Chance, as a fraction, that one more operation is inside, if it is like these in that any order of
        their errors is as likely as any other."""
        return len(self.by_name) - 1, len(self.by_name) + 1
