"""Words are made in one place: numbers, verdicts and settings as people read them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from altnorm._base.words import FAMILY_NAMES, figures, model_words, plural, score_name
from altnorm.estimator.drift import Drift
from altnorm.evidence.gates import Gate, Gates
from altnorm.evidence.verdict import Caution, Verdict, family_words

RECORD = {
    "scoring": "accuracy",
    "before": 0.69,
    "after": 0.818,
    "gain": 0.128,
    "p_value": 1e-9,
    "ci_low": 0.112,
    "ci_high": 0.145,
    "std_error": 0.008,
    "n_rows": 4500,
    "n_changed": 800,
    "n_fixed": 641,
    "n_broken": 64,
    "adopted": True,
}

TEST = Verdict(**RECORD)
DECISION = replace(TEST, is_decision=True)


def test_a_decision_in_one_line():
    assert str(DECISION) == (
        "Adopted: accuracy 69.0% -> 81.8% (+12.8 points, 95% interval +11.2 to +14.5, p < 0.001); "
        "800 rows changed: 641 fixed, 64 broken, 95 still wrong."
    )
    shared = str(replace(DECISION, n_left=40))  # the others may have been left to a person before
    assert shared.endswith("641 fixed, 64 broken, 55 still not right, 40 left to a person.")
    rejected = replace(DECISION, adopted=False, reason="not_significant", p_value=0.2, ci_low=-0.01)
    assert str(rejected).startswith("Not adopted: accuracy 69.0% -> 81.8%")
    assert str(rejected).endswith("; the evidence is too weak; your decisions stay as they were.")
    costly = replace(rejected, scoring="neg_mean_cost")  # which count without the correction, too
    assert str(costly).endswith("; decisions are made without the correction.")
    absent = replace(DECISION, adopted=False, reason="too_few_labels")
    assert str(absent) == "Not tried: too few labels per class."


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({}, "Better: "),
        ({"adopted": False, "reason": "not_significant"}, "Not settled by these data: "),
        ({"adopted": False, "reason": "no_gain", "gain": -0.1}, "Worse: "),
        ({"adopted": False, "reason": "identical", "after": 0.69}, "No change: accuracy stays at"),
    ],
)
def test_a_test_result_is_not_a_decision(changes, start):
    text = str(replace(TEST, **changes))
    assert text.startswith(start)
    assert "adopted" not in text.lower()
    assert "stay as they were" not in text
    assert "\n" not in text


def test_what_a_decision_rests_on_is_said():
    """And one p-value is told: that of the evidence."""
    gates = [Gate("log_loss", True, 0.0001, 0.01, "log_loss")]
    gates.append(Gate("changed_rows", True, 0.02, 0.05, "log_loss"))
    by_loss = replace(DECISION, evidence="log_loss", ci_low=-0.001, p_value=0.6, gates=gates)
    remark = (
        "the evidence is the log loss (one-sided p = 0.02), so the size of the gain is uncertain"
    )
    assert remark in str(by_loss)
    assert "p = 0.6" not in str(by_loss)
    by_score = str(replace(by_loss, evidence="score"))
    assert "p = 0.6" in by_score
    assert "log loss" not in by_score


def test_serious_cautions_belong_to_the_first_line():
    serious = Caution("other_purpose", "Class bee is lost.", 1.0, serious=True)
    mild = Caution("duplicates", "Many copies.", 1.0)
    text = str(DECISION.with_cautions((serious, mild)))
    assert text.endswith("; but class bee is lost.")
    refused = replace(DECISION, adopted=False, reason="suspect_input", cautions=(serious,))
    assert "; the input is probably wrong; class bee is lost; " in str(refused)


def test_losses_are_losses():
    loss = {"scoring": "neg_log_loss", "in_points": False, "before": -1.27, "after": -1.05}
    text = str(replace(TEST, **loss, gain=0.22, ci_low=0.2, ci_high=0.24, n_changed=0))
    assert "log loss 1.270 -> 1.050 (-0.220, lower is better, 95% interval -0.240 to -0.200" in text
    assert "decision" not in text  # probabilities are what this is about
    assert "neg_" not in text


@pytest.mark.parametrize("seed", range(9))
def test_rounded_differences_agree_with_rounded_numbers(seed):
    rng = np.random.default_rng(seed)
    before, gain = rng.uniform(0.1, 0.8), rng.normal(scale=0.1)
    text = figures("accuracy", before, before + gain, (gain - 0.1, gain + 0.1), 1, in_points=True)
    first, last = float(text.before[:-1]), float(text.after[:-1])
    assert float(text.change) == pytest.approx(last - first, abs=1e-9)
    assert text.change[:4] != "-0.0" or float(text.change) != 0


def test_no_share_changes_by_more_than_all_of_it():
    interval = (-4.628, 4.413)
    text = figures("balanced_accuracy", 0.93, 0.82, interval, 1, in_points=True)
    assert (text.low, text.high) == ("-100.0", "+100.0")
    text = figures("matthews_corrcoef", 0.9, -0.8, interval, 1, in_points=True)
    assert (text.low, text.high) == ("-200.0", "+200.0")
    text = figures("neg_log_loss", -1.0, -1.1, interval, 1, in_points=False)
    assert (text.low, text.high) == ("-4.413", "+4.628")


@pytest.mark.parametrize(
    ("low", "high", "end"),
    [
        (0.1, 0.3, "p < 0.001)."),
        (-0.1, 0.3, "; but these labels do not show that it falls."),
        (-0.3, -0.1, "; but on these labels it rises."),
    ],
)
def test_probabilities_that_are_applied_without_a_test_say_what_it_shows(low, high, end):
    gain = (low + high) / 2
    loss = {"scoring": "neg_log_loss", "before": -1.0, "after": gain - 1.0, "gain": gain}
    verdict = replace(DECISION, **loss, ci_low=low, ci_high=high, n_changed=0, in_points=False)
    assert str(verdict).startswith("Applied: log loss 1.000 -> ")
    assert str(verdict).endswith(end)
    goal = replace(verdict, gates=Gates([Gate("rise", True, 0.1, 0.0)]), evidence="score")
    assert str(goal).startswith("Adopted: log loss 1.000 -> ")  # by a test
    assert "but" not in str(goal)


def test_no_negative_zero_and_one_row():
    text = figures("accuracy", 0.5, 0.49999999, (-0.02, 0.02), 1, in_points=True)
    assert text.change == "0.0"
    assert plural(1, "row") == "1 row"
    one = replace(TEST, n_changed=1, n_fixed=1, n_broken=0)
    assert "1 row changed: 1 fixed" in str(one)


@pytest.mark.parametrize(
    ("family", "adopted", "ratio", "words"),
    [
        (None, False, None, "changes nothing"),
        ("bias", True, None, "multiplies each class by a factor and calibrates probabilities"),
        ("curves", False, None, "changes no decision and calibrates probabilities"),
        ("bias", False, 1, "adapts predictions to another class balance and calibrates prob"),
    ],
)
def test_what_a_model_does_in_words(family, adopted, ratio, words):
    verdict = SimpleNamespace(adopted=adopted, insisted=False)
    mixture = SimpleNamespace(log_ratio=ratio)
    model = SimpleNamespace(family_=family, verdict_=verdict, mixture_=mixture, calibrate=True)
    model.decision_, model.target_accuracy = SimpleNamespace(counts_costs_alone=False), None
    assert model_words(model).startswith(words)
    if family in FAMILY_NAMES and not adopted and ratio is None:
        verdict.insisted = True
        assert model_words(model).startswith("corrects each class along a bent curve")
    model.decision_.counts_costs_alone = True
    calibrates = " and calibrates probabilities" if family else ""
    if ratio is None:
        assert model_words(model) == f"decides by your costs{calibrates}"


def test_what_became_of_a_family_in_words():
    loss = replace(DECISION, scoring="neg_log_loss", adopted=False, reason="not_significant")
    assert family_words(loss, 0.876) == "chosen, 88% of the mixture"
    assert family_words(loss, 0.004) == "chosen, under 1% of the mixture"
    assert family_words(loss) == "better than a temperature"
    assert family_words(replace(loss, ci_low=-0.1)) == "not clearly better than a temperature"
    assert family_words(replace(loss, gain=-0.1)) == "no better than a temperature"
    skipped = replace(loss, reason="too_many_classes")
    assert family_words(skipped) == "not tried: too many classes"


def test_notebooks_show_the_same_words():
    gates = Gates([Gate("rise", True, 0.012, 0.0), Gate("score", False, 1e-9, 0.01, "score")])
    verdict = replace(DECISION, gates=gates, cautions=(Caution("code", "Mind the <gap>.", 1.0),))
    shown = verdict._repr_html_()
    assert "the score rises" in shown
    assert "one-sided p &lt; 0.01" in shown
    assert "<b>Adopted:</b>" in shown
    assert "Caution: Mind the &lt;gap&gt;." in shown
    drift = Drift(0.1, 0.3, 0.2, True, 500)
    assert str(drift).partition(":")[2] in drift._repr_html_()


def test_accuracy_of_several_labels_is_called_exact_match():
    assert score_name("accuracy") == "accuracy"
    assert score_name("accuracy", multilabel=True) == "exact-match accuracy"
    assert score_name("f1_micro", multilabel=True) == score_name("f1_micro") == "micro-F1"
    assert score_name("neg_log_loss", multilabel=True) == "log loss"
