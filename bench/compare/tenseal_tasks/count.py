"""Statements of each task, between its marks, in both libraries, counted by Python's own parser.

python bench/compare/tenseal_tasks/count.py [--run LIBRARY=PYTHON ...]

With --run, every task of that library is run by that interpreter (its assertions compare with NumPy) and the
seconds of the whole program are printed, too.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TASKS = ("search", "regression", "mlp")
LIBRARIES = ("crenel", "tenseal")


def statements(path: Path) -> int:
    """Between `# begin` and `# end`; a lambda is part of its statement, a comprehension too."""
    inside = path.read_text(encoding="utf-8").split("# begin\n")[1].split("# end\n")[0]
    return sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse(inside)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", action="append", default=[], metavar="LIBRARY=PYTHON")
    pythons = dict(pair.split("=", 1) for pair in parser.parse_args().run)
    for task in TASKS:
        cells = []
        for library in LIBRARIES:
            path = HERE / f"{task}_{library}.py"
            cell = f"{library} {statements(path)} statements"
            if library in pythons:
                start = time.perf_counter()
                subprocess.run([pythons[library], path], check=True)
                cell += f", {time.perf_counter() - start:.1f} s"
            cells.append(cell)
        print(f"{task}: {'; '.join(cells)}")


if __name__ == "__main__":
    main()
