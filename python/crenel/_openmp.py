"""Loads the extension, whose threads spin for a moment only where they wait for each other.

libgomp lets a thread that waits spin for milliseconds before it sleeps, and asks the environment once, when
it is loaded. Where others use the cores too, the thread that is waited for may need the very core on which
another one spins: each of the thousands of short loops of an operation costs a scheduler's slice then, and
the operation tens of times its time. Sleeping at once costs a wake-up a loop on cores that nobody else uses.
"""

import os

SPINS = "1000"  # tens of microseconds: what lies between two loops of one operation
TOLD = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")  # by whoever started this process, who knows better


def load() -> None:
    """Once, before anything else imports the extension; the environment is as before after it."""
    told = any(name in os.environ for name in TOLD)
    if not told:
        os.environ["GOMP_SPINCOUNT"] = SPINS
    try:
        import crenel._crenel  # noqa: F401
    finally:
        if not told:
            os.environ.pop("GOMP_SPINCOUNT", None)


load()
