"""The predictions of several seeds in one file."""

import numpy as np
import pytest

from experiments._multilabel.files import join_seeds, read_seed, seed_names, write_arrays


def draw_arrays(seed):
    """Logits of the seed's own, and labels that all seeds share."""
    rng = np.random.default_rng(seed)
    logits = np.round(rng.normal(-4, 3, (200, 7)), 1).astype(np.float16)
    logits[0, :2] = 0.0, -np.inf
    return {
        "val_logits": logits,
        "val_labels": np.random.default_rng(0).integers(2, size=(200, 7), dtype=np.uint8),
        "train_frequencies": np.linspace(0, 1, 7),
        "meta": np.array([f"seed {seed}"]),
    }


@pytest.fixture
def seeds(tmp_path):
    for seed in range(3):
        write_arrays(tmp_path / f"study_seed{seed}.npz", draw_arrays(seed))
    return [tmp_path / f"study_seed{seed}.npz" for seed in range(3)]


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_every_seed_comes_back_to_the_bit(seeds, tmp_path):
    joined = tmp_path / "predictions.npz"
    join_seeds(seeds[::-1], joined)
    assert seed_names(joined) == ["study_seed0", "study_seed1", "study_seed2"]
    for seed, path in enumerate(seeds):
        assert_same(read_seed(path), draw_arrays(seed))
        assert_same(read_seed(joined, path.stem), draw_arrays(seed))


def test_what_seeds_share_is_stored_once(seeds, tmp_path):
    joined = tmp_path / "predictions.npz"
    join_seeds(seeds, joined)
    with np.load(joined) as file:
        labels = [name for name in file.files if "labels" in name]
        assert labels == ["val_labels"]
        assert sum("meta" in name for name in file.files) == len(seeds)


def test_the_same_numbers_make_the_same_file(seeds, tmp_path):
    write_arrays(tmp_path / "again.npz", draw_arrays(0))
    assert (tmp_path / "again.npz").read_bytes() == seeds[0].read_bytes()


def test_a_file_of_one_seed_goes_by_its_own_name(seeds):
    assert seed_names(seeds[1]) == ["study_seed1"]
