"""Against scikit-learn, and against refits that leave each case out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge, RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from timesliver.errors import InvalidInputError, InvalidParameterError
from timesliver.training import ridge
from timesliver.training.ridge import solve_ridge, temperature

ALPHAS = np.logspace(-3, 3, 10)
# (cases, columns): more columns, as many, one fewer, far fewer
SHAPES = [(30, 70), (24, 24), (25, 24), (90, 8)]


class Blocks:
    """Columns of a matrix, cut into blocks; counts what is fetched."""

    def __init__(self, X, cuts=()):
        self.parts = np.split(X, list(cuts), axis=1)
        self.widths = [part.shape[1] for part in self.parts]
        self.most = 0

    def __len__(self):
        return len(self.parts[0])

    def block(self, index, cases):
        found = self.parts[index][cases]
        self.most = max(self.most, len(found))
        return found


def data(n, p, n_classes, seed=0, standard=False):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, p)) * rng.uniform(0.1, 10, size=p) + rng.normal(size=p) * 5
    X[:, : n_classes + 1] += rng.normal(size=(n_classes, n_classes + 1))[y] * X.std()
    if standard:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X.astype(np.float32), y, rng.uniform(0.2, 3, size=n)


def scores(solution, X):
    return X.astype(np.float64) @ np.concatenate(solution.weights, axis=1).T + solution.bias


def assert_same(first, second, rtol=1e-7, atol=1e-9):
    assert first.strength == second.strength
    for name in ("bias", "left_out", "errors"):
        np.testing.assert_allclose(
            getattr(first, name), getattr(second, name), rtol=rtol, atol=atol, err_msg=name
        )
    for name in ("weights", "means"):
        one, two = (np.concatenate(getattr(found, name), axis=-1) for found in (first, second))
        np.testing.assert_allclose(one, two, rtol=rtol, atol=atol, err_msg=name)


class TestAgainstScikitLearn:
    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("n_classes", [2, 4])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_standardised_features(self, shape, n_classes, weighted):
        X, y, weight = data(*shape, n_classes, standard=True)
        weight = weight if weighted else np.ones(len(y))
        found = solve_ridge(Blocks(X, [3, 5]), y, n_classes, weight, scaled=False)
        # float64: scikit-learn returns its coefficients in the type of the features
        model = RidgeClassifierCV(ALPHAS, store_cv_results=True)
        model.fit(X.astype(np.float64), y, sample_weight=weight)
        assert found.strength == model.alpha_
        weights = np.concatenate(found.weights, axis=1)
        if n_classes == 2:
            weights, bias, decisions = weights[1:], found.bias[1:], scores(found, X)[:, 1]
        else:
            bias, decisions = found.bias, scores(found, X)
        coefficients = model.coef_.reshape(weights.shape)  # flat or not, by version
        np.testing.assert_allclose(weights, coefficients, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(bias, model.intercept_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(decisions, model.decision_function(X), rtol=1e-5, atol=1e-7)
        # scikit-learn's mean is over cases, not over their weight
        errors = model.cv_results_.mean(axis=(0, 1)) * len(y) / weight.sum()
        np.testing.assert_allclose(found.errors, errors, rtol=1e-6)

    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_pipeline(self, shape, n_classes):
        X, y, _ = data(*shape, n_classes)
        found = solve_ridge(Blocks(X, [7]), y, n_classes, np.ones(len(y)))
        model = make_pipeline(StandardScaler(), RidgeClassifierCV(ALPHAS))
        model.fit(X.astype(np.float64), y)
        assert found.strength == model[-1].alpha_
        decisions = scores(found, X) if n_classes > 2 else scores(found, X)[:, 1]
        expected = model.decision_function(X.astype(np.float64))
        np.testing.assert_allclose(decisions, expected, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(np.concatenate(found.means), model[0].mean_, rtol=1e-6)


class TestLeftOut:
    @pytest.mark.parametrize("shape", [(9, 14), (12, 5), (3, 4)])
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_refits(self, shape, n_classes):
        X, y, weight = data(*shape, n_classes)
        found = solve_ridge(Blocks(X, [1]), y, n_classes, weight, strengths=[0.01, 0.5, 20])
        Z = X.astype(np.float64)
        mean = np.average(Z, axis=0, weights=weight)
        Z = (Z - mean) / np.sqrt(np.average((Z - mean) ** 2, axis=0, weights=weight))
        T = np.where(y[:, None] == np.arange(n_classes), 1.0, -1.0)
        for strength, error in zip([0.01, 0.5, 20], found.errors, strict=True):
            left_out = np.empty_like(T)
            for i in range(len(y)):
                keep = np.arange(len(y)) != i
                model = Ridge(strength, tol=1e-12).fit(Z[keep], T[keep], weight[keep])
                left_out[i] = model.predict(Z[i : i + 1])[0]
            expected = np.average(((T - left_out) ** 2).mean(axis=1), weights=weight)
            assert error == pytest.approx(expected, rel=1e-7)
            if strength == found.strength:
                np.testing.assert_allclose(found.left_out, left_out, rtol=1e-6, atol=1e-8)
        assert found.strength == [0.01, 0.5, 20][found.errors.argmin()]

    def test_two_cases(self):
        found = solve_ridge(Blocks(np.array([[0, 1], [2, 1]])), np.array([0, 1]), 2, np.ones(2))
        # without one case the other one's target is all there is
        np.testing.assert_allclose(found.left_out, [[-1, 1], [1, -1]], atol=1e-12)
        np.testing.assert_allclose(found.errors, 4)
        assert found.strength == ALPHAS[-1]  # all tie


class TestTwoWays:
    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("scaled", [False, True])
    def test_dual_is_primal(self, shape, n_classes, scaled):
        X, y, weight = data(*shape, n_classes)
        X[:, 4] = 3.3  # constant
        X[:, 5] = X[:, 6]  # twice
        targets = np.where(y[:, None] == np.arange(n_classes), 1.0, -1.0)
        problem = ridge._Problem(targets, weight, ALPHAS, scaled)
        first = ridge._solve_dual(Blocks(X, [2, 9]), problem)
        second = ridge._solve_primal(Blocks(X, [2, 9]), problem)
        for one, two in zip(first, second, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-7)

    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("size", [1, 7, 1000])
    def test_slices(self, shape, size, monkeypatch):
        X, y, weight = data(*shape, 3)
        expected = solve_ridge(Blocks(X), y, 3, weight)
        monkeypatch.setattr(ridge._Problem, "__init__", _smaller(ridge._Problem.__init__, size))
        features = Blocks(X, [1, 1, 6])  # one block is empty
        found = solve_ridge(features, y, 3, weight)
        assert_same(found, expected)
        assert [part.shape for part in found.weights] == [(3, w) for w in features.widths]
        assert [len(part) for part in found.means] == features.widths
        assert features.most == min(size, len(y))


def _smaller(init, size):
    return lambda self, *args: init(self, *args, size=size)


class TestFeatures:
    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("scaled", [False, True])
    def test_constant(self, shape, scaled):
        X, y, weight = data(*shape, 2)
        more = np.insert(X, [0, 3, 8], [[0.0, 1234.5, -1e-30]], axis=1)
        more[::2, 4] = np.nextafter(np.float32(1234.5), np.float32(2000))  # only rounding
        found = solve_ridge(Blocks(more, [5]), y, 2, weight, scaled=scaled)
        weights = np.concatenate(found.weights, axis=1)
        assert not weights[:, [0, 4, 10]].any()
        plain = solve_ridge(Blocks(X), y, 2, weight, scaled=scaled)
        expected = np.concatenate(plain.weights, axis=1)
        np.testing.assert_allclose(np.delete(weights, [0, 4, 10], axis=1), expected, atol=1e-9)

    @pytest.mark.parametrize("width", [3, 30])
    def test_nothing_varies(self, width):
        y, weight = np.array([0, 0, 1, 1, 1, 2, 2, 2]), np.arange(1.0, 9)
        found = solve_ridge(Blocks(np.full((8, width), 2.5, dtype=np.float32)), y, 3, weight)
        assert not np.concatenate(found.weights).any()
        share = np.bincount(y, weights=weight) / weight.sum()
        np.testing.assert_allclose(found.bias, 2 * share - 1)
        assert found.strength == ALPHAS[-1]

    @pytest.mark.parametrize("shape", SHAPES)
    def test_twice(self, shape):
        # Two equal columns share the work of one that is the root of 2 times as large.
        X, y, weight = data(*shape, 3, standard=True)
        twice = solve_ridge(Blocks(np.c_[X, X], [shape[1]]), y, 3, weight, [1.0])
        once = solve_ridge(Blocks(X), y, 3, weight, [0.5])
        np.testing.assert_allclose(scores(twice, np.c_[X, X]), scores(once, X), atol=1e-6)
        np.testing.assert_allclose(twice.weights[0], twice.weights[1], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(twice.left_out, once.left_out, atol=1e-6)

    @pytest.mark.parametrize("shape", [(30, 70), (40, 8)])
    def test_far_from_zero_and_sorted(self, shape):
        X, y, weight = data(*shape, 2)
        order = np.argsort(y, kind="stable")
        X, y, weight = np.round(X[order]), y[order], weight[order]  # exact after the shift
        X[y == 1] += 100
        near = solve_ridge(Blocks(X), y, 2, weight)
        far = solve_ridge(Blocks(X + np.float32(2**20)), y, 2, weight, strengths=[near.strength])
        np.testing.assert_allclose(far.left_out, near.left_out, atol=1e-6)

    @settings(max_examples=30, deadline=None)
    @given(
        seed=st.integers(0, 1000),
        n=st.integers(4, 25),
        p=st.integers(1, 25),
        n_classes=st.integers(2, 4),
        power=st.integers(-8, 8),
        cut=st.integers(0, 25),
    )
    def test_units_do_not_matter(self, seed, n, p, n_classes, power, cut):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(n, p)).astype(np.float32), np.arange(n) % n_classes
        weight = rng.uniform(0.5, 2, size=n)
        first = solve_ridge(Blocks(X), y, n_classes, weight)
        order = rng.permutation(p)
        changed = X[:, order] * np.float32(2.0**power)
        second = solve_ridge(Blocks(changed, [min(cut, p)]), y, n_classes, weight, [first.strength])
        np.testing.assert_allclose(second.left_out, first.left_out, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(scores(second, changed), scores(first, X), atol=1e-7)
        # the classes' targets add up to the same for every case: so do the scores
        total = scores(first, X).sum(axis=1)
        np.testing.assert_allclose(total, 2 - n_classes, atol=1e-9)


class TestCases:
    @pytest.mark.parametrize("shape", [(10, 40), (30, 6)])
    def test_whole_weights_are_repeats(self, shape):
        X, y, _ = data(*shape, 3)
        times = 1 + np.arange(len(y)) % 3
        one = solve_ridge(Blocks(X), y, 3, times, [0.7])
        two = solve_ridge(
            Blocks(X.repeat(times, axis=0)), y.repeat(times), 3, [1] * sum(times), [0.7]
        )
        np.testing.assert_allclose(one.weights[0], two.weights[0], rtol=1e-6, atol=1e-10)
        np.testing.assert_allclose(one.bias, two.bias, rtol=1e-6)

    @pytest.mark.parametrize("shape", SHAPES)
    def test_two_classes_are_opposites(self, shape):
        X, y, weight = data(*shape, 2)
        found = solve_ridge(Blocks(X, [5]), y, 2, weight)
        for one in (*found.weights, found.bias[:, None], found.left_out.T):
            np.testing.assert_array_equal(one[0], -one[1])

    def test_order_of_strengths(self):
        X, y, weight = data(30, 70, 2)
        up = solve_ridge(Blocks(X), y, 2, weight, ALPHAS)
        down = solve_ridge(Blocks(X), y, 2, weight, ALPHAS[::-1])
        assert up.strength == down.strength
        np.testing.assert_allclose(up.errors, down.errors[::-1])

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"y": np.zeros(3, int)}, "one value for each of 4 cases"),
            ({"y": np.array([0, 1, 2, 1])}, "from 0 to 1"),
            ({"weight": np.array([1, 0, 1, 1.0])}, "above 0"),
            ({"weight": np.array([1, np.nan, 1, 1.0])}, "finite"),
            ({"n_classes": 1}, "at least 2"),
            ({"features": Blocks(np.zeros((4, 0)))}, "no columns"),
            ({"features": Blocks(np.full((4, 2), np.nan))}, "NaN"),
            ({"features": Blocks(np.full((4, 9), np.inf), [4])}, "block 0 .* infinite"),
        ],
    )
    def test_mistakes(self, change, words):
        given = {
            "features": Blocks(np.eye(4)),
            "y": np.array([0, 1, 0, 1]),
            "n_classes": 2,
            "weight": np.ones(4),
        }
        with pytest.raises(InvalidInputError, match=words):
            solve_ridge(**{**given, **change})

    @pytest.mark.parametrize("strengths", [[], [0.0, 1], [np.inf], 1.0])
    def test_strengths(self, strengths):
        with pytest.raises(InvalidParameterError, match="above 0"):
            solve_ridge(Blocks(np.eye(4)), np.array([0, 1, 0, 1]), 2, np.ones(4), strengths)


class TestTemperature:
    @pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
    @pytest.mark.parametrize("n_classes", [2, 5])
    def test_known_factor(self, factor, n_classes):
        rng = np.random.default_rng(0)
        logits = rng.normal(size=(40_000, n_classes)) * 1.5
        y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
        weight = rng.uniform(0.5, 2, size=len(y))
        assert temperature(logits / factor, y, weight) == pytest.approx(factor, rel=0.03)

    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("each", [1, 5, 100])
    def test_separable(self, n_classes, each):
        y = np.arange(n_classes).repeat(each)
        scores = np.where(y[:, None] == np.arange(n_classes), 1.0, -1.0)
        t = temperature(scores, y, np.ones(len(y)))
        p = np.exp(2 * t) / (np.exp(2 * t) + n_classes - 1)
        assert p == pytest.approx((each + 1) / (each + 2), rel=1e-5)

    def test_weights(self):
        rng = np.random.default_rng(1)
        scores, y = rng.normal(size=(50, 3)), np.arange(50) % 3
        scores[np.arange(50), y] += 1
        weight = rng.uniform(0.5, 2, size=50)
        t = temperature(scores, y, weight)
        assert temperature(scores, y, 10 * weight) == pytest.approx(t, rel=1e-5)
        assert temperature(scores / 2, y, weight) == pytest.approx(2 * t, rel=1e-5)
        assert temperature(scores, y, weight) == t

    def test_no_use(self):
        y = np.arange(20) % 2
        wrong = np.where(y[:, None] == np.arange(2), -1.0, 1.0)
        assert 0.01 <= temperature(wrong, y, np.ones(20)) < 0.011
        assert 0.01 <= temperature(np.zeros((20, 2)), y, np.ones(20)) <= 100

    def test_mistakes(self):
        with pytest.raises(InvalidInputError, match="finite"):
            temperature(np.full((3, 2), np.nan), np.array([0, 1, 1]), np.ones(3))
