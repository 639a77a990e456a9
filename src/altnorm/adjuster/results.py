"""The settings tried, as a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from altnorm.adjuster.evidence import Ledger
from altnorm.adjuster.settings import BiasSetting, MatrixSetting, Setting

_FIELDS = dict.fromkeys(("family", *Setting._fields, *BiasSetting._fields, *MatrixSetting._fields))
_EMPTY: dict[str, Any] = {"reference": "", "member": "", "penalty": "", "depth": 0}


def as_table(ledger: Ledger) -> dict[str, np.ndarray]:
    """Cross-fitted scores of all settings, one entry each; what a family lacks is NaN or empty."""
    settings, rounds = ledger.common(), ledger.full_rounds()
    attribution: Any = ledger.attribute
    gain = np.array([np.mean([r[s].gain for r in rounds]) for s in settings])
    table = {
        name: np.array([getattr(s, name, _EMPTY.get(name, np.nan)) for s in settings])
        for name in _FIELDS
    }
    table = {name: v for name, v in table.items() if any(hasattr(s, name) for s in settings)}
    table["score"] = attribution.base_score + gain
    table["gain"] = gain
    changed = [np.mean([r[s].n_changed for r in rounds]) for s in settings]
    table["n_changed"] = np.round(changed).astype(int)
    # The first `argsort` says who comes at each rank, the second at which rank each comes.
    table["rank"] = 1 + np.argsort(np.argsort(-gain, kind="stable"))
    return table
