"""Counting tests out of the JUnit files of ctest and pytest."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

RAN = re.compile(r"^\[={10}\] (\d+) tests? from \d+ test (?:suites?|cases?) ran", re.MULTILINE)
SUMMARY = re.compile(r"^\[  (PASSED|SKIPPED)\s*\] (\d+) tests?[.,]", re.MULTILINE)
FAILED_NAME = re.compile(r"^\[  FAILED  \] ([^\s,]+)(?:, where .*)? \(\d+ ms\)$", re.MULTILINE)
SKIP_REASON = re.compile(r": Skipped\n(.*)")


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    cuda_skipped: int = 0
    failures: list[str] = field(default_factory=list)

    def add_one(self, name: str, passed: bool) -> None:
        if passed:
            self.passed += 1
        else:
            self.failed += 1
            self.failures.append(name)

    def skip(self, text: str) -> None:
        self.skipped += 1
        self.cuda_skipped += "cuda" in text.lower() or "gpu" in text.lower()

    def merge(self, other: Counts) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.cuda_skipped += other.cuda_skipped
        self.failures += other.failures

    def line(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def _cases(report: Path):
    if not report.exists():
        return []
    return ElementTree.parse(report).getroot().iter("testcase")


def from_ctest(report: Path) -> Counts:
    """A ctest entry that is a GoogleTest program counts as many tests as it ran, any other as one."""
    counts = Counts()
    for case in _cases(report):
        name = case.get("name", "?")
        output = case.findtext("system-out") or ""
        failed = case.get("status") == "fail" or case.find("failure") is not None
        if RAN.search(output) is None:
            skipped = case.get("status") in ("notrun", "disabled") or case.find("skipped") is not None
            if skipped and not failed:
                counts.skip(name + output)
            else:
                counts.add_one(name, passed=not failed)
            continue
        _count_googletest(counts, name, output, failed)
    return counts


def _count_googletest(counts: Counts, name: str, output: str, failed: bool) -> None:
    summary = {kind: int(number) for kind, number in SUMMARY.findall(output)}
    passed, skipped = summary.get("PASSED", 0), summary.get("SKIPPED", 0)
    lost = int(RAN.search(output)[1]) - passed - skipped
    counts.passed += passed
    reasons = SKIP_REASON.findall(output)[:skipped]
    for reason in reasons + [name] * (skipped - len(reasons)):
        counts.skip(reason)
    counts.failed += lost
    counts.failures += [f"{name}: {test}" for test in FAILED_NAME.findall(output)]
    if failed and not lost:  # all tests pass, and the program still fails
        counts.add_one(name, passed=False)


def from_pytest(report: Path) -> Counts:
    counts = Counts()
    for case in _cases(report):
        name = f"{case.get('classname')}::{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            counts.add_one(name, passed=False)
        elif skipped is not None:
            counts.skip(f"{name} {skipped.get('message')}")
        else:
            counts.add_one(name, passed=True)
    return counts
