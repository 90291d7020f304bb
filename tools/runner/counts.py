"""Counting tests out of the JUnit files of ctest, GoogleTest and pytest; every skip keeps its reason."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

RAN = re.compile(r"^\[={10}\] (\d+) tests? from \d+ test (?:suites?|cases?) ran", re.MULTILINE)
SUMMARY = re.compile(r"^\[  (PASSED|SKIPPED)\s*\] (\d+) tests?[.,]", re.MULTILINE)
FAILED_NAME = re.compile(r"^\[  FAILED  \] ([^\s,]+)(?:, where .*)? \(\d+ ms\)$", re.MULTILINE)
SKIP_REASON = re.compile(r": Skipped\n(.*)")
NO_REASON = "no reason given"


class Skip(NamedTuple):
    """One test that did not run."""

    name: str
    reason: str

    @property
    def cuda(self) -> bool:
        """For want of a GPU or of CUDA, as far as the reason tells."""
        return any(word in self.reason.lower() for word in ("cuda", "gpu"))


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skips: list[Skip] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def skipped(self) -> int:
        return len(self.skips)

    @property
    def cuda_skipped(self) -> int:
        return sum(skip.cuda for skip in self.skips)

    def add_one(self, name: str, passed: bool) -> None:
        if passed:
            self.passed += 1
        else:
            self.failed += 1
            self.failures.append(name)

    def skip(self, name: str, reason: str | None) -> None:
        self.skips.append(Skip(name, " ".join((reason or "").split()) or NO_REASON))

    def merge(self, other: Counts) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skips += other.skips
        self.failures += other.failures

    def line(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"

    def by_reason(self) -> dict[str, list[str]]:
        """Reason -> names of the tests that it kept from running; what kept most of them first."""
        found: dict[str, list[str]] = {}
        for skip in self.skips:
            found.setdefault(skip.reason, []).append(skip.name)
        return {r: sorted(names) for r, names in sorted(found.items(), key=lambda i: (-len(i[1]), i[0]))}


def _cases(report: Path):
    if not report.exists():
        return []
    return ElementTree.parse(report).getroot().iter("testcase")


def from_ctest(report: Path, googletest: Path | None = None) -> Counts:
    """A ctest entry that is a GoogleTest program counts as many tests as it ran, any other as one.
    `googletest`: folder with the programs' own reports, which have the names of skipped tests."""
    counts = Counts()
    for case in _cases(report):
        name = case.get("name", "?")
        output = case.findtext("system-out") or ""
        failed = case.get("status") == "fail" or case.find("failure") is not None
        if RAN.search(output) is None:
            skipped = case.get("status") in ("notrun", "disabled") or case.find("skipped") is not None
            if skipped and not failed:
                counts.skip(name, output or case.findtext("skipped") or f"ctest: {case.get('status')}")
            else:
                counts.add_one(name, passed=not failed)
            continue
        _count_googletest(counts, name, output, failed, googletest)
    return counts


def _count_googletest(counts: Counts, name: str, output: str, failed: bool, reports: Path | None) -> None:
    summary = {kind: int(number) for kind, number in SUMMARY.findall(output)}
    passed, skipped = summary.get("PASSED", 0), summary.get("SKIPPED", 0)
    lost = int(RAN.search(output)[1]) - passed - skipped
    counts.passed += passed
    found = _googletest_skips(reports / f"{name}.xml") if reports else []
    if len(found) != skipped:  # a program of another name, or one that died before it wrote its report
        reasons = SKIP_REASON.findall(output)[:skipped]
        found = [Skip(f"{name}: test unknown", reason) for reason in reasons]
        found += [Skip(f"{name}: test unknown", "")] * (skipped - len(reasons))
    for skip in found:
        counts.skip(*skip)
    counts.failed += lost
    counts.failures += [f"{name}: {test}" for test in FAILED_NAME.findall(output)]
    if failed and not lost:  # all tests pass, and the program still fails
        counts.add_one(name, passed=False)


def _googletest_skips(report: Path) -> list[Skip]:
    """The message of GTEST_SKIP stands below the line that says where it was called."""
    found = []
    for case in _cases(report):
        skipped = case.find("skipped")
        if skipped is not None:
            where, _, reason = (skipped.get("message") or "").partition("\n")
            found.append(Skip(f"{case.get('classname')}.{case.get('name')}", reason.strip() or where))
    return found


def from_pytest(report: Path) -> Counts:
    counts = Counts()
    for case in _cases(report):
        name = f"{case.get('classname')}::{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            counts.add_one(name, passed=False)
        elif skipped is not None:
            counts.skip(name, skipped.get("message"))
        else:
            counts.add_one(name, passed=True)
    return counts
