import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from classifier.conftest import bumps, small
from timesliver.errors import InvalidInputError, InvalidParameterError, MissingExtraError
from timesliver.metrics.infidelity import infidelity, sensitivity_max

rng = np.random.default_rng(0)
X = rng.normal(size=(5, 2, 8))
weights = rng.normal(size=(2, 8))


def linear(X):
    logit = (weights * np.nan_to_num(X)).sum(axis=(1, 2))
    return np.stack([logit, -logit], axis=1)


sign = np.sign(linear(X)[:, 0])[:, None]  # of the predicted class
shares = sign * (weights * X).sum(axis=1)


def test_without_captum(monkeypatch):
    monkeypatch.setitem(sys.modules, "captum.metrics", None)
    with pytest.raises(MissingExtraError, match=r"timesliver\[explain\]"):
        infidelity(linear, X, shares)
    with pytest.raises(MissingExtraError, match=r"timesliver\[explain\]"):
        sensitivity_max(None, X)


class TestInfidelity:
    @pytest.fixture(autouse=True)
    def _captum(self):
        pytest.importorskip("captum", reason="needs the extra 'explain'")

    def test_true_shares_are_faithful(self):
        np.testing.assert_allclose(infidelity(linear, X, shares, 30).values, 0, atol=1e-20)
        assert (infidelity(linear, X, 7 * shares, 30).values > 0.01).all()
        scaled = infidelity(linear, X, 7 * shares, 30, normalize=True)
        np.testing.assert_allclose(scaled.values, 0, atol=1e-10)

    def test_known_beforehand(self):
        # Removing either of two points, or both, costs 2 each.
        series = np.full((1, 1, 2), 2.0)

        def total(X):
            return np.stack([X.sum(axis=(1, 2)), 0 * X.sum(axis=(1, 2))], axis=1)

        for scores, percent, expected in (
            ([[0.0, 0.0]], 50, 4),
            ([[1.0, 3.0]], 50, 1),
            ([[1.0, 3.0]], 100, 0),
            ([[0.0, 0.0]], 100, 16),
            ([[-2.0, -2.0]], 100, 64),
        ):
            assert infidelity(total, series, scores, percent).values == pytest.approx(expected)

    def test_missing_values_and_unequal_lengths(self):
        longer = X.copy()
        longer[0, :, 5:] = np.nan
        longer[1, 0, 2] = np.nan
        honest = np.sign(linear(longer)[:, :1]) * (weights * np.nan_to_num(longer)).sum(axis=1)
        found = infidelity(linear, longer, honest, 30)
        np.testing.assert_allclose(found.values, 0, atol=1e-20)
        cases = [np.arange(1.0, 4.0), np.arange(1.0, 9.0)]

        def total(X):
            sums = np.array([np.sum(case) for case in X])
            return np.stack([sums, -sums], axis=1)

        values = np.array([[1, 2, 3, 0, 0, 0, 0, 0], np.arange(1, 9)])
        np.testing.assert_allclose(infidelity(total, cases, values, 50).values, 0, atol=1e-20)

    @pytest.mark.parametrize("masking", ["zero", "no_symbol"])
    def test_our_shares_beat_nothing_and_chance(self, masking):
        series, y, _ = bumps()
        model = small().fit(series, y)
        scores = model.explain(series, method="additive")
        how = {"masking": masking, "percent": 20}
        found = infidelity(model, series, scores, **how)
        assert found.values.shape == (len(series),)
        assert found.mean < infidelity(model, series, 0 * scores.net, **how).mean
        assert found.mean < infidelity(model, series, scores.net[:, ::-1], **how).mean

    def test_repeatable_and_without_global_generators(self):
        before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
        once = infidelity(linear, X, 0 * shares, random_state=3)
        again = infidelity(linear, X, 0 * shares, random_state=3)
        other = infidelity(linear, X, 0 * shares, random_state=4)
        np.testing.assert_array_equal(once.values, again.values)
        assert (once.values != other.values).any()
        assert torch.equal(before[0], torch.get_rng_state())
        np.testing.assert_array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002

    def test_mistakes(self):
        for percent in (0, 101):
            with pytest.raises(InvalidParameterError, match="must be"):
                infidelity(linear, X, shares, percent)
        with pytest.raises(InvalidParameterError, match="n_perturbations must be"):
            infidelity(linear, X, shares, n_perturbations=0)
        with pytest.raises(InvalidInputError, match="is nan"):
            infidelity(linear, X, shares * np.nan)
        with pytest.raises(InvalidInputError, match="do not fit"):
            infidelity(linear, X, shares[:3])
        with pytest.raises(InvalidParameterError, match="use masking='zero'"):
            infidelity(linear, X, shares, masking="no_symbol")


class Copying:
    """Explains a series by its values, times a factor."""

    def __init__(self, factor=1.0):
        self.factor, self.targets = factor, []

    def explain(self, X, target=None):
        self.targets.append(target)
        net = self.factor * np.nan_to_num(X).sum(axis=1) + (self.factor == 0)
        index = np.arange(len(X)) % 2
        return SimpleNamespace(net=net, classes=np.array(["a", "b"]), target=index)


class TestSensitivity:
    @pytest.fixture(autouse=True)
    def _captum(self):
        pytest.importorskip("captum", reason="needs the extra 'explain'")

    def test_known_beforehand(self):
        series = np.tile([1.0, -1.0], (6, 1, 4))  # standard deviation 1, norm sqrt(8)
        found = sensitivity_max(Copying(), series, radius=0.1, n_perturbations=400)
        # At most 0.1; 400 draws of the root mean square of 8 uniform numbers come near.
        assert (found.values <= 0.1).all()
        assert (found.values > 0.075).all()
        tenfold = sensitivity_max(Copying(), 10 * series, radius=0.1, n_perturbations=400)
        np.testing.assert_allclose(tenfold.values, found.values)
        np.testing.assert_array_equal(sensitivity_max(Copying(0), series).values, 0)

    def test_the_class_explained_stays(self):
        explainer = Copying()
        sensitivity_max(explainer, X, n_perturbations=2)
        assert explainer.targets[0] is None
        for labels in explainer.targets[1:]:
            np.testing.assert_array_equal(labels, list("ababa"))

    def test_our_classifier(self):
        series, y, _ = bumps()
        model = small().fit(series, y)
        before = torch.get_rng_state()
        gentle = sensitivity_max(model, series[:8], 0.01, 4, method="additive")
        rough = sensitivity_max(model, series[:8], 0.5, 4, method="additive")
        assert gentle.values.shape == (8,)
        assert 0 < gentle.mean < rough.mean
        again = sensitivity_max(model, series[:8], 0.01, 4, method="additive")
        np.testing.assert_array_equal(gentle.values, again.values)
        assert torch.equal(before, torch.get_rng_state())

    def test_missing_values_stay_missing(self):
        gaps = X.copy()
        gaps[:, :, 6:] = np.nan
        found = sensitivity_max(Copying(), gaps)
        assert (found.values > 0).all()
        np.testing.assert_array_equal(
            sensitivity_max(Copying(), np.where(np.isnan(gaps), np.nan, 0.0)).values > 0, True
        )

    def test_mistakes(self):
        for radius in (0, -1, np.nan, "x"):
            with pytest.raises(InvalidParameterError, match="radius must be"):
                sensitivity_max(Copying(), X, radius)
        with pytest.raises(InvalidParameterError, match="part='up'"):
            sensitivity_max(Copying(), X, part="up")
        with pytest.raises(InvalidParameterError, match="n_perturbations"):
            sensitivity_max(Copying(), X, n_perturbations=0)
