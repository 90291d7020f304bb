"""What tools/fit_launches.py keeps of accounts that nothing makes any more."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ACCOUNTS = ROOT / "bench/results/gpus-accounts-boot40.json"
BEFORE = json.loads(ACCOUNTS.read_text(encoding="utf-8"))

spec = importlib.util.spec_from_file_location("fit_launches", ROOT / "tools/fit_launches.py")
fit_launches = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fit_launches)
KEPT = [name for form in fit_launches.KEPT for name in fit_launches.tables(form)]


@pytest.fixture
def renewed(tmp_path, monkeypatch):
    """Renews accounts from a file like `before`, those of today being empty."""
    monkeypatch.setattr(fit_launches, "bootstrap", lambda off: [])
    monkeypatch.setattr(fit_launches, "operations", lambda off: [[] for _ in fit_launches.PRODUCTS])

    def run(before, *words):
        file, out = tmp_path / "before.json", tmp_path / "after.json"
        file.write_text(json.dumps(before))
        files = ["--kept", str(file), "--json", str(out)]
        monkeypatch.setattr("sys.argv", ["fit_launches.py", "accounts", *files, "--commit", "a" * 40, *words])
        try:
            fit_launches.main()
        except SystemExit:
            assert not out.exists()
            raise
        return json.loads(out.read_text())

    return run


def test_kept_accounts_stay_with_the_commits_that_they_were_computed_at(renewed):
    after = renewed(BEFORE, "--whole-twiddles", "b.json", "a.json", "--older", "c.json")
    assert {name: after[name] for name in KEPT} == {name: BEFORE[name] for name in KEPT}
    commits = BEFORE["account_at_commit"]
    assert after["account_at_commit"] == {**commits, "today": "a" * 40}
    assert after["records"] == {
        "whole twiddles": ["a.json", "b.json"], "together": [], "earlier": [], "older": ["c.json"],
    }  # fmt: skip
    assert [after[name] for name in fit_launches.tables("today")] == [[]] * 8


@pytest.mark.parametrize(
    "name", ["bootstrap; earlier; one", "hmult_rescale, 23 limbs; whole twiddles; several"]
)
def test_a_file_that_lacks_a_kept_account_is_an_error(renewed, name):
    with pytest.raises(SystemExit, match=f"lacks accounts that nothing makes any more: {name}$"):
        renewed({key: value for key, value in BEFORE.items() if key != name})


def test_a_file_of_another_format_is_an_error(renewed):
    with pytest.raises(SystemExit, match="format 2, expected 3"):
        renewed({**BEFORE, "format": 2, "account_at_commit": "b" * 40})
