"""Tables beside the paper's (FHECore, Tables IV, IX and X), and the tolerance check."""

from __future__ import annotations

from pathlib import Path

from fhecore.syn.flow import Result

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

# The paper's figures: um2, GHz.
PAPER_PE_AREA, PAPER_PE_GHZ = 5901.1, 3.50
PAPER_GRID_AREA, PAPER_GRID_GHZ = 46096.5, 1.58
PAPER_TABLE_IV = (("TC PE", 4954.8, 75577.0), ("enhanced TC PE", 10286.2, 115791.0))
PAPER_UNITS_AREA = 19.91  # mm2, Table IX
PAPER_DIE = 845.91  # mm2 with the units, Table X
A100_DIE = 826.0  # mm2
A100_BOOST = 1.41  # GHz: the clock that the unit must not hold back
UNITS = 432  # one a tensor core
ELEMENTS = 128


def tables(results: list[Result]) -> str:
    """Text of all tables that the given results allow."""
    by = {r.design: r for r in results}
    lines = ["design            area um2   flops   period ps   GHz    what"]
    for r in results:
        lines.append(
            f"{r.design:16s} {r.area:10,.1f} {r.flops:7,d} {r.period:11.1f} {r.frequency_ghz:6.2f}   {r.note}"
        )
    element, around = by.get("modmul_pe_cs"), by.get("array_periphery")
    wrapper = by.get("wrapper_periphery")
    if element:
        lines += ["", *_against_paper(element, around, wrapper)]
    for r in results:
        steps = " ".join(kind for _, kind, _ in r.critical_cells)
        lines += ["", f"{r.design}: slowest path {r.critical_start} -> {r.critical_end}", f"  {steps}"]
    return "\n".join(lines)


def _against_paper(element: Result, around: Result | None, wrapper: Result | None) -> list[str]:
    sum_elements = ELEMENTS * element.area
    grid = sum_elements + (around.area if around else 0)
    clock = max(element.period, around.period if around else 0)
    units = UNITS * grid / 1e6
    what = "128 elements + periphery" if around else "128 elements, without periphery"
    paper_sum = ELEMENTS * PAPER_PE_AREA
    lines = [
        "                              ours        paper (Tables IX, X)",
        f"element, um2            {element.area:12,.1f}  {PAPER_PE_AREA:12,.1f}",
        f"element, GHz            {element.frequency_ghz:12.2f}  {PAPER_PE_GHZ:12.2f}"
        f"   (needed: {A100_BOOST} GHz, {'met' if element.frequency_ghz >= A100_BOOST else 'NOT MET'})",
        f"16x8 array, um2         {grid:12,.1f}  {PAPER_GRID_AREA:12,.1f}   ours: {what}",
        f"16x8 array, GHz         {1000 / clock:12.2f}  {PAPER_GRID_GHZ:12.2f}",
        f"432 arrays, mm2         {units:12.2f}  {PAPER_UNITS_AREA:12.2f}",
        f"A100 die with them, mm2 {A100_DIE + units:12.2f}  {PAPER_DIE:12.2f}",
        f"die overhead            {units / A100_DIE:12.1%}  {PAPER_DIE / A100_DIE - 1:12.1%}",
        *(_with_wrapper(grid, clock, wrapper) if around and wrapper else []),
        "",
        "The paper's own table does not close:",
        f"  Table IX: 128 x {PAPER_PE_AREA:,.1f} = {paper_sum:,.0f} um2,"
        f" {paper_sum / PAPER_GRID_AREA:.1f} times its grid of {PAPER_GRID_AREA:,.1f} um2",
        f"    ({PAPER_GRID_AREA / ELEMENTS:.0f} um2 an element); 432 x 128 of its elements are"
        f" {UNITS * paper_sum / 1e6:.0f} mm2, {UNITS * paper_sum / 1e6 / A100_DIE:.0%} of the die.",
    ]
    for name, one, grid_paper in PAPER_TABLE_IV:
        lines.append(
            f"  Table IV: {name}: 128 x {one:,.1f} = {ELEMENTS * one:,.0f} um2 against {grid_paper:,.0f} um2."
        )
    return lines


def _with_wrapper(grid: float, clock: float, wrapper: Result) -> list[str]:
    """The whole unit; the paper gives no area of what stands around its array. `grid` in um2, `clock` ps."""
    unit = grid + wrapper.area
    whole = UNITS * unit / 1e6
    ghz = 1000 / max(clock, wrapper.period)
    return [
        f"around the array, um2   {wrapper.area:12,.1f}  {'-':>12}   buffers, constants, control:"
        f" {wrapper.area / unit:.0%} of the unit",
        f"unit, um2               {unit:12,.1f}  {'-':>12}   array and what is around it",
        f"unit, GHz               {ghz:12.2f}  {'-':>12}   (needed: {A100_BOOST} GHz,"
        f" {'met' if ghz >= A100_BOOST else 'NOT MET'})",
        f"432 units, mm2          {whole:12.2f}  {'-':>12}",
        f"die overhead, units     {whole / A100_DIE:12.1%}  {'-':>12}",
    ]


def check(results: list[Result], tolerances: Path) -> list[str]:
    """Deviations beyond the recorded tolerance, one a line; a design without a record is one too."""
    recorded = tomllib.loads(tolerances.read_text())
    wrong = []
    for r in results:
        want = recorded.get(r.design)
        if want is None:
            wrong.append(f"{r.design}: no record in {tolerances.name}")
            continue
        for name, value in (("area", r.area), ("period", r.period)):
            drift = value / want[name] - 1
            if abs(drift) > want[f"{name}_drift"]:
                wrong.append(
                    f"{r.design}: {name} {value:.1f}, recorded {want[name]:.1f}: {drift:+.1%},"
                    f" allowed {want[f'{name}_drift']:.0%}"
                )
        if r.frequency_ghz < want.get("least_ghz", 0):
            wrong.append(f"{r.design}: {r.frequency_ghz:.2f} GHz, needed {want['least_ghz']} GHz")
    return wrong
