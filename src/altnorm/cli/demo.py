"""``altnorm demo``: the whole story on real predictions that ship inside the package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.padding import Padding
from rich.text import Text
from sklearn.frozen import FrozenEstimator

from altnorm import Adjuster, AlternatingNormalizerCV
from altnorm import compare as compare_methods
from altnorm._sentences import change_words
from altnorm._words import setting_words
from altnorm.cli import _options as options
from altnorm.cli._fit import fit_named
from altnorm.cli._screen import errors, out, print_json, score_table, show_verdict
from altnorm.cli.compare import comparison_table
from altnorm.comparison import Comparison, default_methods
from altnorm.datasets import Demo, load_demo
from altnorm.evaluation import Evaluation, evaluate
from altnorm.explanation import ChangedRow

EXAMPLE = "altnorm demo"


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Report to write.")
    ] = Path("altnorm-demo.html"),
    jobs: options.Jobs = -1,
    json: options.Json = False,
) -> None:
    """Tune, judge, explain and compare on 7,500 real queries to an assistant. Needs no network."""
    data = load_demo()
    tuned = Adjuster(n_jobs=jobs, verbose=int(errors.is_terminal))
    fit_named(tuned, data.validation)
    result = evaluate(tuned, data.test)
    compared = _compare(tuned, data)
    report = _write_report(tuned, data, compared, output)
    if json:
        print_json(_record(tuned, result, compared, report))
    else:
        _show(tuned, data, result, compared, report)


def _compare(tuned: Adjuster, data: Demo) -> Comparison:
    """The peers, and what was tuned, without tuning it again."""
    methods = {
        name: method
        for name, method in default_methods().items()
        if not isinstance(method, (Adjuster, AlternatingNormalizerCV))
    }
    methods["altnorm"] = FrozenEstimator(tuned)
    val, test = data.validation, data.test
    return compare_methods(
        val.proba,
        val.codes,
        test.proba,
        test.codes,
        methods=methods,
        verbose=int(errors.is_terminal),
    )


def _write_report(tuned: Adjuster, data: Demo, compared: Comparison, output: Path) -> Path | None:
    """Write the report, if its extra is installed."""
    if find_spec("jinja2") is None:
        return None
    from altnorm.report import write_report

    write_report(
        tuned,
        data.test,
        output,
        comparison=compared,
        validation=data.validation,
        texts=data.queries,
        title="altnorm demo: intents of queries to an assistant",
        force=True,
    )
    return output


def _record(
    tuned: Adjuster, result: Evaluation, compared: Comparison, report: Path | None
) -> dict[str, Any]:
    return {
        "validation": tuned.verdict_.to_dict(),
        "best_params": tuned.best_params_,
        "test": result.to_dict(),
        "comparison": compared.to_dicts(),
        "report": None if report is None else str(report),
    }


def _show(
    tuned: Adjuster,
    data: Demo,
    result: Evaluation,
    compared: Comparison,
    report: Path | None,
) -> None:
    rows, classes = data.validation.proba.shape
    _head("The classifier")
    out.print(
        f"Naive Bayes on word counts says which of {classes} intents a query to an assistant has. "
        f"It was trained on imbalanced data (CLINC150, Larson et al. 2019, CC BY 3.0)."
    )
    _head(f"Should I use it? Tuned on {rows:,} validation queries")
    show_verdict(tuned.verdict_)
    out.print(f"Setting: {setting_words(tuned.best_params_)}", style="dim")
    _head(f"What changes? Before and after on {len(data.queries):,} test queries it has not seen")
    out.print(score_table([result.verdict, *result.scores]))
    out.print(f"{change_words(result.verdict)}.")
    _head("Why? Three rows that were fixed and one that was broken")
    _show_rows(data, result)
    _head("How does it compare?")
    out.print(comparison_table(compared))
    _head("Next")
    if report is not None:
        out.print(f"Open {report} for the interactive report.", soft_wrap=True)
    out.print("Your own predictions: altnorm tune val.parquet --label NAME -o model.safetensors")


def _head(text: str) -> None:
    out.print()
    out.print(Text(text, style="bold"))


def _show_rows(data: Demo, result: Evaluation) -> None:
    fixed = _telling(result.changed(result.fixed), 3)
    broken = _telling(result.changed(result.broken), 1)
    for row, mark, style in (
        *((row, "fixed", "green") for row in fixed),
        *((row, "broken", "red") for row in broken),
    ):
        out.print(Text(f"{mark:>6}", style=style), Text(f"“{data.queries[row.row]}”"))
        out.print(Padding(Text(str(row), style="dim"), (0, 0, 0, 7)))


def _telling(rows: list[ChangedRow], n: int) -> list[ChangedRow]:
    """The clearest changes, no class twice."""
    chosen: list[ChangedRow] = []
    for row in sorted(rows, key=lambda row: -row.proba_after):
        seen = {name for one in chosen for name in (one.before, one.after)}
        if not seen & {row.before, row.after}:
            chosen.append(row)
    return chosen[: np.minimum(n, len(chosen))]
