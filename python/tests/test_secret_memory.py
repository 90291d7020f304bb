"""What crenel.secret_memory() says, and what the kernel says about the same pages."""

from __future__ import annotations

import gc
import resource
import sys

import pytest
from test_fork import in_child

import crenel
from crenel import ckks


def regions() -> list[tuple[int, int, set[str]]]:
    """(begin, end, VmFlags) of every mapping of this process."""
    found = []
    with open("/proc/self/smaps") as smaps:
        for line in smaps:
            first, *words = line.split()
            if first == "VmFlags:":
                found[-1][2].update(words)
            elif "-" in first and not first.endswith(":"):
                begin, end = (int(x, 16) for x in first.split("-"))
                found.append((begin, end, set()))
    return found


def undumped_bytes() -> tuple[int, int]:
    """Bytes left out of core dumps, and those of them that are locked."""
    hidden = [(end - begin, flags) for begin, end, flags in regions() if "dd" in flags and "mr" in flags]
    hidden = [(size, flags) for size, flags in hidden if {"rd", "wr"} <= flags and "io" not in flags]
    return sum(size for size, _ in hidden), sum(size for size, flags in hidden if "lo" in flags)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/smaps is Linux'")


@pytest.mark.parametrize("device", ["ref", "cpu"])
def test_a_client_costs_secret_pages_and_gives_them_back(device):
    context = ckks.Context(ckks.preset("leveled-n13-s30"), device=device)
    gc.collect()
    before = crenel.secret_memory()
    client = context.keygen()
    held = crenel.secret_memory().bytes - before.bytes
    assert held >= 4 * context.params.ring_dim * len(context.params.primes)
    client.encrypt([1.0])
    assert crenel.secret_memory().bytes == before.bytes + held
    del client
    gc.collect()
    assert crenel.secret_memory().bytes == before.bytes


def test_the_report_is_what_the_kernel_says():
    context = ckks.Context(ckks.preset("leveled-n13-s30"), device="cpu")
    client = context.keygen()
    report = crenel.secret_memory()
    hidden, locked = undumped_bytes()
    assert report.dumpable_bytes == 0
    assert hidden >= report.bytes + report.idle_bytes
    assert locked >= report.locked_bytes
    assert report.locked_bytes + report.unlocked_bytes == report.bytes + report.idle_bytes
    assert "bytes in use" in repr(report)
    del client


def test_what_cannot_be_locked_is_counted():
    def job():
        import os

        resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
        if os.geteuid() == 0:
            os.setuid(65534)  # root locks without limit
        context = ckks.Context(ckks.preset("leveled-n13-s30"), device="cpu")
        client = context.keygen()
        client.encrypt([1.0])
        report = crenel.secret_memory()
        return report.lock_limit, report.unlocked_bytes, report.dumpable_bytes

    limit, unlocked, dumpable = in_child(job)
    assert limit == 0 and unlocked > 0 and dumpable == 0
