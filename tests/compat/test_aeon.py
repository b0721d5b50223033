import numpy as np
import pytest

pytest.importorskip("aeon", reason="needs the extra 'archive'")

from aeon.testing.estimator_checking import parametrize_with_checks
from sklearn.base import clone

import timesliver
from classifier.conftest import bumps
from timesliver.compat.aeon import TimeSliverClassifier


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@parametrize_with_checks([TimeSliverClassifier])
def test_aeon_checks(check):
    check()


def test_the_adapter_is_thin():
    X, y, _ = bumps()
    settings = {"max_epochs": 5, "positional_encoding": False, "random_state": 0, "n_jobs": 1}
    adapter = TimeSliverClassifier(**settings).fit(X, y)
    direct = timesliver.TimeSliverClassifier(**settings).fit(X, y)
    np.testing.assert_array_equal(adapter.predict_proba(X), direct.predict_proba(X))
    assert adapter.get_params() == direct.get_params()
    assert clone(adapter).get_params() == adapter.get_params()
    assert len(adapter.model_.explain(X[:2])) == 2
    with pytest.raises(TypeError, match="n_bin"):
        TimeSliverClassifier(n_bin=3)
