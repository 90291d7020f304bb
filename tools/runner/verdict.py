"""The end of ./run test: times, what was left out and why, failures, the count, and a stale receipt last."""

from __future__ import annotations

from runner import receipt
from runner.counts import Counts
from runner.shell import LOGS, say, stage_times, tell_left_out

REASONS_SHOWN = 25
LOUD = "!" * 78


def close(total: Counts, problem: str, gpu: bool, whole: bool) -> int:
    """The exit code. `gpu`: no test may be skipped for want of CUDA; `whole`: all of the suite ran, which is
    what the receipt is about."""
    if gpu and (lost := [skip for skip in total.skips if skip.cuda]):
        total.skips = [skip for skip in total.skips if not skip.cuda]
        total.failed += len(lost)
        total.failures.append(f"{len(lost)} CUDA tests were skipped although --gpu was asked for")
    if total.passed + total.failed == 0:
        total.add_one("no test ran", passed=False)
    say("\n== times")
    for name, seconds in stage_times:
        say(f"   {seconds:8.1f} s  {name}")
    _tell_skips(total, gpu)
    stale = receipt.staleness() if whole else []
    if gpu and whole and not total.failed:
        say(f"   receipt written: {receipt.write(total)}")
        stale = []
    for name in total.failures[:50]:
        say(f"FAILED {name}")
    if len(total.failures) > 50:
        say(f"FAILED and {len(total.failures) - 50} more")
    if problem:
        say(f"\n{problem}\n")
    say(total.line())
    if stale:
        lines = [*stale, "On a GPU host run ./run test --gpu and commit the receipt."]
        say("\n".join([LOUD, *(f"!! {line}" for line in lines), LOUD]))
    return 1 if total.failed else 0


def _tell_skips(total: Counts, gpu: bool) -> None:
    """Every reason with its count; the names are in a file, since there are hundreds without a GPU."""
    tell_left_out()
    reasons = total.by_reason()
    if not reasons:
        return
    listing = LOGS / "skipped.txt"
    listing.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{reason}\n" + "".join(f"    {n}\n" for n in names) for reason, names in reasons.items())
    listing.write_text(text)
    say(f"\n== {total.skipped} skipped, by reason (names: build/logs/{listing.name})")
    for reason, names in list(reasons.items())[:REASONS_SHOWN]:
        say(f"   {len(names):5}  {reason[:150]}")
    if len(reasons) > REASONS_SHOWN:
        say(f"          and {len(reasons) - REASONS_SHOWN} more reasons")
    if total.cuda_skipped and not gpu:
        say(f"   {total.cuda_skipped} of them for want of CUDA; on a GPU host ./run test --gpu runs them")
