"""Pictures of programs and reports.

`graph(program)`
    the plan as an SVG document: a box a step, and what each reads
`levels(program, path)`
    levels along the plan, bootstraps marked
`errors(report, path)`
    of each value, the error that the model expects and the one that was measured

Charts need matplotlib (`pip install 'crenel[plot]'`), graphs nothing.
"""

from crenel.nn.pictures.charts import errors, levels
from crenel.nn.pictures.graph import graph

__all__ = ["errors", "graph", "levels"]
