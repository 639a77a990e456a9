"""The paper's Monte Carlo study, which ``altnorm simulate`` runs; `figure` draws its result."""

from altnorm.simulation._study import (
    PAPER_EDGES,
    Design,
    Draws,
    Estimate,
    Simulation,
    adjust_draws,
    average,
    draw,
    draw_log_rows,
    simulate,
    table,
)

__all__ = [
    "PAPER_EDGES",
    "Design",
    "Draws",
    "Estimate",
    "Simulation",
    "adjust_draws",
    "average",
    "draw",
    "draw_log_rows",
    "simulate",
    "table",
]
