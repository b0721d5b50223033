import numpy as np
import pytest

from timesliver.datasets import make_lowvar
from timesliver.datasets.synthetic import narma
from timesliver.errors import InvalidParameterError


def test_narma_follows_its_equation():
    series = narma((2, 50), np.random.default_rng(3))
    u = np.random.default_rng(3).uniform(0, 0.5, size=(2, 50 + 34))
    for i in range(1, 50):
        # the last time point of the series belongs to the last input
        expected = 0.3 * series[:, i - 1] + 1.5 * u[:, i + 32] * u[:, i + 34] + 0.1
        np.testing.assert_allclose(series[:, i], expected)


def test_narma_is_stationary_with_the_known_moments():
    series = narma((4000, 20), np.random.default_rng(0))
    assert series.mean() == pytest.approx(0.277, abs=0.002)
    assert series.std() == pytest.approx(0.089, abs=0.002)
    assert series[:, 0].mean() == pytest.approx(series[:, -1].mean(), abs=0.01)


@pytest.fixture(scope="module")
def data():
    return make_lowvar(2000, random_state=0)


class TestLowVar:
    def test_shapes_and_types(self, data):
        assert data.X.shape == data.salient.shape == (2000, 2, 200)
        assert data.salient.dtype == bool
        assert data.y.dtype.kind == "i"
        assert np.isfinite(data.X).all()

    def test_classes_are_balanced_in_random_order(self, data):
        assert np.bincount(data.y).tolist() == [500] * 4
        assert len(set(data.y[:40:4])) > 1
        assert sorted(np.bincount(make_lowvar(10, random_state=1).y)) == [2, 2, 3, 3]

    def test_salient_stretch(self, data):
        one_channel = data.salient.any(axis=2)
        assert (one_channel.sum(axis=1) == 1).all()
        np.testing.assert_array_equal(one_channel.argmax(axis=1), data.y // 2)
        time = data.salient.any(axis=1)
        assert time.mean() == pytest.approx(0.0725, abs=0.001)
        assert set(time.sum(axis=1)) == set(range(10, 20))
        assert set(time.argmax(axis=1)) <= set(range(20, 160))
        edges = np.diff(time.astype(int), axis=1)
        assert ((edges == 1).sum(axis=1) == 1).all()

    def test_levels_and_noise(self, data):
        for label, level in enumerate((-1.5, 1.5, -1.5, 1.5)):
            calm = data.X[data.y == label][data.salient[data.y == label]]
            assert calm.mean() == pytest.approx(level, abs=0.01)
            assert calm.std() == pytest.approx(0.1, abs=0.01)
        noise = data.X[~data.salient]
        assert noise.mean() == pytest.approx(0.277, abs=0.01)
        assert noise.std() == pytest.approx(1.0, abs=0.02)

    def test_seed(self):
        np.testing.assert_array_equal(make_lowvar(8, 5).X, make_lowvar(8, 5).X)
        assert not np.array_equal(make_lowvar(8, 5).X, make_lowvar(8, 6).X)

    def test_a_generator_is_used_on(self):
        rng = np.random.default_rng(0)
        assert not np.array_equal(make_lowvar(8, rng).X, make_lowvar(8, rng).X)

    def test_global_random_state_is_untouched(self):
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        make_lowvar(4)
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002

    def test_no_cases(self):
        with pytest.raises(InvalidParameterError, match="n_cases must be a whole number"):
            make_lowvar(0)
