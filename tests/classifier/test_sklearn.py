"""The estimator has the habits of scikit-learn."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from classifier.conftest import bumps, small, small_segments
from timesliver import Kernels, Segments, TimeSliverClassifier
from timesliver.errors import InvalidParameterError
from timesliver.symbols import SAX, Clock

EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": (
        "a case of weight 2 falls into one mini-batch, two copies of it may fall into two"
    ),
    "check_sample_weight_equivalence_on_sparse_data": (
        "sparse matrices are refused; scikit-learn 1.6 asks for them all the same"
    ),
}


OF_KERNELS = {
    "check_sample_weight_equivalence_on_dense_data": (
        "thresholds come from cases that are drawn, and repeated cases are drawn more often"
    ),
    "check_class_weight_classifiers": (
        "features that vary only among cases of next to no weight are scaled by next to nothing"
    ),
}


@pytest.mark.slow
@parametrize_with_checks(
    [small(max_epochs=60), TimeSliverClassifier(Kernels(252), random_state=0)],
    expected_failed_checks=lambda estimator: (
        EXPECTED_FAILURES | (OF_KERNELS if isinstance(estimator.encoder, Kernels) else {})
    ),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_cross_validation_calibration_and_auc(n_classes):
    X, y, _ = bumps(90, n_classes=n_classes)
    scoring = "roc_auc" if n_classes == 2 else "accuracy"
    assert cross_val_score(small(max_epochs=30), X, y, cv=3, scoring=scoring).mean() > 0.9
    calibrated = CalibratedClassifierCV(small(max_epochs=30), cv=3, method="isotonic").fit(X, y)
    assert calibrated.predict_proba(X).shape == (90, n_classes)
    assert calibrated.score(X, y) > 0.9


def test_pipelines_and_searches():
    X, y, _ = bumps()
    scaled = make_pipeline(FunctionTransformer(np.negative), small()).fit(X, y)
    assert scaled.score(X, y) > 0.9
    table = make_pipeline(StandardScaler(), small()).fit(X[:, 0], y)
    assert table.predict(X[:2, 0]).shape == (2,)
    grid = {
        "encoder__channels": ["mixed", "shared"],
        "encoder__symbols": [SAX(3), "sfa"],
        "encoder__latent_dim": [4, 8],
    }
    search = GridSearchCV(small(), grid, cv=2)
    assert search.fit(X, y).best_score_ > 0.7
    best = search.best_estimator_
    assert best.encoder.latent_dim == search.best_params_["encoder__latent_dim"]
    assert best.network_.terms[0].weight().shape[3] == best.encoder.latent_dim
    deeper = GridSearchCV(small(), {"encoder__symbols__n_bins": [3, 5]}, cv=2).fit(X, y)
    assert deeper.best_estimator_.symbolizers_[0][0].n_bins in (3, 5)


def test_clone_and_parameters():
    model = small(sizes=[2, 0.2], pooling=(2, 1), symbols=[SAX(4), Clock(3)])
    assert same(clone(model).get_params(), model.get_params())
    assert clone(model).encoder is not model.encoder
    X, y, _ = bumps()
    before = repr(model)
    model.fit(X, y)
    assert model.encoder.sizes == [2, 0.2]  # fit changes no parameter
    assert repr(model) == before
    assert not hasattr(clone(model), "network_")


def same(first, second):
    """Whether parameters are equal; encoders and symbolizers are if they read alike."""
    return repr(first) == repr(second)


def test_parameters_of_the_encoder_are_reached_through_it():
    model = small()
    model.set_params(encoder__latent_dim=5, encoder__symbols__n_bins=3, n_estimators=2)
    assert model.get_params()["encoder__latent_dim"] == 5
    assert model.encoder.latent_dim == 5
    assert model.encoder.symbols.n_bins == 3
    with pytest.raises(ValueError, match="Invalid parameter 'n_bins'"):
        model.set_params(n_bins=3)
    assert set(TimeSliverClassifier().get_params()) == {
        "encoder",
        "class_weight",
        "n_estimators",
        "random_state",
        "n_jobs",
        "time_budget",
        "device",
        "verbose",
    }
    for encoder, name in (("auto", "encoder__sizes"), (Segments(), "encoder__symbols__n_bins")):
        with pytest.raises(InvalidParameterError, match=f"{name}: what is given by its name"):
            TimeSliverClassifier(encoder).set_params(**{name: 4})
    several = clone(TimeSliverClassifier([small_segments(depth=1), "segments"]))
    assert several.encoder[0].depth == 1
    assert several.encoder[1] == "segments"


def test_an_encoder_has_the_habits_of_scikit_learn_too():
    encoder = small_segments(sizes=(2, 5))
    again = clone(encoder)
    assert again is not encoder
    assert repr(again) == repr(encoder)
    assert clone(SAX(7, normalize=None)).get_params() == {
        "n_bins": 7,
        "normalize": None,
        "window": 1,
    }


def test_decision_function_follows_scikit_learn():
    X, y, _ = bumps(n_classes=3)
    three = small().fit(X, y)
    np.testing.assert_array_equal(three.decision_function(X), three.logits(X))
    two = small().fit(X, y == 0)
    logits = two.logits(X)
    np.testing.assert_array_equal(two.decision_function(X), logits[:, 1] - logits[:, 0])
    np.testing.assert_array_equal(two.predict(X), two.decision_function(X) > 0)
    np.testing.assert_allclose(
        two.predict_proba(X)[:, 1], 1 / (1 + np.exp(-two.decision_function(X))), rtol=1e-5
    )
