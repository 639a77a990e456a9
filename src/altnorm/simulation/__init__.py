"""The paper's Monte Carlo study, which ``altnorm simulate`` runs."""

from altnorm.simulation._draws import (
    PAPER_EDGES,
    Design,
    Draws,
    adjust_draws,
    draw,
    draw_log_rows,
)
from altnorm.simulation._study import Estimate, Simulation, average, simulate, table

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
