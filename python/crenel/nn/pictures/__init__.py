"""Pictures of programs and reports.

`graph(program)`
    the plan as an SVG document: a box a step, and what each reads
`levels(program, target)`
    levels along the plan, bootstraps marked
`errors(report, target)`
    of each value, the error that the model expects and the one that was measured

A target is a file, or axes of matplotlib.

Charts need matplotlib (`pip install 'crenel[plot]'`), graphs nothing.
"""

from crenel.nn.pictures.charts import errors, levels
from crenel.nn.pictures.graph import graph

__all__ = ["errors", "graph", "levels"]
