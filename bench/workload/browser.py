"""The digits demo in headless Chromium: what each step of the page takes, in the benchmark schema.

    python bench/workload/browser.py [--page build/web/page] [--runs 5] [--threads N] [--json FILE]
    python bench/workload/browser.py --table docs/assets/browser-table.png    # only draws a table's page

Service, worker and browser share this machine. Each run is a new tab with a new key; a seven is drawn with
the mouse, and the answer compared with the program in the clear. `client_s` is what the client computes:
secret key, evaluation keys, encryption and decryption. Needs the package installed with `serve` and `demo`,
and Chromium; the page's folder is made by web/CMakeLists.txt.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from chromium import Chromium, launched

CLIENT = ["Make a secret key", "Make keys for the server", "Encrypt the digit", "Decrypt the answer"]
NAMES = {
    "Load the module": "load_s", "Ask for the program": "program_s", "Make a secret key": "keygen_s",
    "Make keys for the server": "keys_s", "Send and check these keys": "send_s",
    "Encrypt the digit": "encrypt_s", "Classify it, encrypted": "classify_s",
    "of this, computing": "compute_s", "Decrypt the answer": "decrypt_s",
}  # fmt: skip
SEVEN = [(0.3, 0.2), (0.7, 0.2), (0.5, 0.5), (0.42, 0.85)]
ANSWER = "#answer[data-digit], #state[data-error]"
WINDOW = 1280, 780
TABLED, TABLE_ANSWER = 12, "#table-answer[data-classes], #state[data-error]"


def classified(browser: Chromium, url: str, program, picture: Path | None) -> dict:
    """Seconds of each step of a new tab, bytes, threads, and whether the answer is the program's."""
    import numpy as np

    with browser.tab(url, *WINDOW) as tab:
        tab.wait_for("#classify:not([disabled])", 240)
        tab.drag("#drawing", SEVEN)
        tab.click("#classify")
        tab.wait_for(ANSWER, 600)
        steps, threads = tab.evaluate("crenelSteps"), tab.evaluate("crenelThreads")
        answer = tab.evaluate("document.querySelector('#answer').dataset.digit")
        sample = tab.evaluate(
            "import('./picture.mjs').then((m) =>"
            " Array.from(m.pixels(m.inkOf(document.querySelector('#drawing')), 8)))"
        )
        if picture:
            tab.picture(picture)
    wanted = int(program.simulate(np.array([sample])).argmax())
    found = {NAMES[s["name"]]: s["milliseconds"] / 1e3 for s in steps}
    found["client_s"] = sum(s["milliseconds"] for s in steps if s["name"] in CLIENT) / 1e3
    size = {NAMES[s["name"]].replace("_s", "_bytes"): s["bytes"] for s in steps if s["bytes"]}
    correct = answer == str(wanted)
    return found | size | {"threads": threads, "correct": correct, "load": list(os.getloadavg())}


def tabled(page: Path, program_of: str, picture: Path) -> None:
    """Draws the page with the answers of a CSV file: some digits, one of them with a wrong label.

    Times in the picture are those of a machine that may be busy."""
    from crenel import serve
    from crenel.workloads.networks import demo_serve

    program, _ = demo_serve.program("cpu", 1)
    pixels, labels = demo_serve.digits()
    labels = [*labels[:TABLED]]
    labels[1] = (labels[1] + 1) % 10
    lines = [",".join([*(f"pixel{k}" for k in range(64)), "digit"])]
    for row, label in zip(pixels[:TABLED], labels, strict=True):
        lines.append(",".join(f"{16 * value:.0f}" for value in row) + f",{label}")
    with tempfile.TemporaryDirectory() as folder, launched(program_of) as browser:
        program.save(Path(folder) / "digits.crn")
        table = Path(folder) / "digits.csv"
        table.write_text("\n".join(lines) + "\n")
        settings = serve.Settings(data=str(Path(folder) / "data"), page=str(page), guests=10)
        with (
            serve.running([Path(folder) / "digits.crn"], settings, device="cpu") as service,
            browser.tab(f"{service.url}/page/", *WINDOW) as tab,
        ):
            tab.wait_for("#classify:not([disabled])", 240)
            tab.choose("#table", table)
            tab.evaluate("document.querySelector('#divisor').value = 16")
            tab.click("#classify-table")
            tab.wait_for(TABLE_ANSWER, 600)
            tab.picture(picture)


def measured(
    page: Path, program_of: str, runs: int, threads: int | None, picture: Path | None
) -> tuple[dict, str]:
    """The record of all runs, and the browser's version."""
    from crenel import serve
    from crenel.workloads import records
    from crenel.workloads.networks import demo_serve

    program, _ = demo_serve.program("cpu", 1)
    with tempfile.TemporaryDirectory() as folder, launched(program_of) as browser:
        program.save(Path(folder) / "digits.crn")
        settings = serve.Settings(data=str(Path(folder) / "data"), page=str(page), guests=10 * runs)
        with serve.running([Path(folder) / "digits.crn"], settings, device="cpu") as service:
            url = f"{service.url}/page/" + ("" if threads is None else f"?threads={threads}")
            rows = [classified(browser, url, program, None if k else picture) for k in range(runs)]
        version = browser.version
    times = {name: statistics.median(row[name] for row in rows) for name in [*NAMES.values(), "client_s"]}
    sizes = {name: size for name, size in rows[0].items() if name.endswith("_bytes")}
    record = {
        "name": "digits", **records.facts_of(program.params), "browser": f"Chromium {version}, headless",
        "rotation_keys": len(program.client.rotations), "runs": runs, **times, **sizes,
        "clients_s": [row["client_s"] for row in rows], "loads": [row["load"] for row in rows],
        "threads": min(row["threads"] for row in rows), "correct": all(row["correct"] for row in rows),
    }  # fmt: skip
    return record, version


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", type=Path, default=Path("build/web/page"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, help="of the client; the page's usual number unless given")
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    parser.add_argument("--picture", type=Path, help="where the first run's page is drawn to")
    parser.add_argument("--table", type=Path, help="draw the page of a CSV file there, and measure nothing")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if not options.chromium or not (options.page / "crenel.wasm").is_file():
        parser.error(f"no Chromium, or no page in {options.page}")
    if options.table:
        tabled(options.page, options.chromium, options.table)
        return 0
    row, _ = measured(options.page, options.chromium, options.runs, options.threads, options.picture)
    print(
        f"{row['threads']} threads, client {row['client_s']:.2f} s (keys {row['keys_s']:.2f} s of "
        f"{row['keys_bytes'] / 2**20:.1f} MiB, "
        f"encrypt {1e3 * row['encrypt_s']:.0f} ms, decrypt {1e3 * row['decrypt_s']:.0f} ms), "
        f"send and check {row['send_s']:.2f} s, classify {row['classify_s']:.2f} s, "
        f"{'correct' if row['correct'] else 'WRONG'}, load {row['loads'][-1][0]:.1f}"
    )
    if options.json:
        import crenel
        from crenel.records import provenance, record, write_record

        where = provenance(crenel.Device("cpu"), " ".join(["python", *sys.argv]))
        write_record(options.json, record("browser", where, [row]))
    return 0 if row["correct"] else 1


if __name__ == "__main__":
    sys.exit(main())
