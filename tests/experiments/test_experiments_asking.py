"""The study of asking: its runs stop where `judge` first answers, and its page says what it saw."""

import numpy as np
import pytest
from scipy.special import expit, softmax

pytest.importorskip("matplotlib")

import altnorm
from experiments.asking import __main__ as asking, study
from experiments.suite.files import Classifier
from tests.pages import check_page, draw_logits, draw_tags, read_page, write_classifier

CLASSES = [draw_logits(n, seed, [2, 0, 0, -1]) for n, seed in ((300, 0), (200, 1))]
TAGS = [draw_tags(n, seed) for n, seed in ((300, 0), (200, 1))]


@pytest.mark.parametrize(
    ("parts", "to_proba", "adjustment"),
    [
        (CLASSES, lambda z: softmax(z, axis=1), study.UNLABELLED),
        (CLASSES, lambda z: softmax(z, axis=1), study.BCTS),
        (TAGS, expit, study.UNLABELLED),
    ],
)
def test_a_run_stops_at_the_first_answer(parts, to_proba, adjustment):
    arrays = (array for logits, y in parts for array in (to_proba(logits), y))
    classifier = Classifier("tiny", *arrays)
    case = study.make_case(classifier, adjustment)
    fit = study.fit_unlabelled if adjustment == study.UNLABELLED else study.fit_labelled
    normalizer, pool = fit(classifier), classifier.test_proba
    changed = np.sort(altnorm.ask(normalizer, pool))
    for seed in range(3):
        rows = changed[altnorm.ask(case.normalizer, case.proba, random_state=seed)]
        labels = classifier.test_y[rows]
        answers = (altnorm.judge(normalizer, pool, rows, labels[:n]) for n in range(len(rows) + 1))
        first = next(answer for answer in answers if answer.decision != "go on")
        run = study.run_once(case, seed)
        assert run.n_labels == first.n_labelled
        assert run.is_right == (first.adopted == (case.gain > 0))
        late = altnorm.judge(normalizer, pool, rows, labels[: int(0.9 * len(rows))])
        assert run.is_covered == (late.ci_low <= case.gain + 1e-12 <= late.ci_high + 2e-12)
        assert run.n_labels <= run.n_random <= len(pool)


def test_the_page_says_what_was_measured(tmp_path):
    data, output = tmp_path / "data", tmp_path / "out"
    for name, parts in (("cifar10_tiny", CLASSES), ("dialogre_tiny", TAGS)):
        write_classifier(data / f"{name}.npz", *parts)
    asking.main(["--data", str(data), "--quick", "--output", str(output), "--jobs", "1"])
    rows = check_page(output)["asking"]
    assert [row["classifier"] for row in rows] == ["cifar10_tiny"] * 2 + ["dialogre_tiny"]
    page = read_page(output)
    wrong = np.mean([float(row["wrong"]) for row in rows])
    assert f"| wrong answer at the stop | at most 5 % | {wrong:.1f} % |" in page
