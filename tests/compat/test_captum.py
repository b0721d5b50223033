import numpy as np
import pytest
import torch

pytest.importorskip("captum", reason="needs the extra 'explain'")

from captum.metrics import infidelity, sensitivity_max

from classifier.conftest import bumps, small
from timesliver.compat.captum import TimeSliverAttribution
from timesliver.errors import InvalidInputError

X, y, _ = bumps(n_channels=2)
series = torch.from_numpy(X[:5]).float()


@pytest.fixture(scope="module")
def model():
    return small(channels="separate").fit(X, y)


def test_scores_are_those_of_explain(model):
    adapter = TimeSliverAttribution(model)
    scores = model.explain(X[:5].astype(np.float32), target=1, method="additive")
    found = adapter.attribute(series, target=1)
    np.testing.assert_allclose(found.sum(1).numpy(), scores.net, rtol=1e-5, atol=1e-6)
    logits = adapter.forward_func(series)[:, 1].numpy()
    np.testing.assert_allclose(found.sum((1, 2)).numpy() + scores.base, logits, atol=1e-5)
    each = adapter.attribute(series, target=torch.tensor([0, 1, 1, 0, 1]))
    torch.testing.assert_close(each[1], found[1])
    predicted = adapter.attribute(series)
    assert predicted.shape == series.shape


def test_captums_metrics_accept_them(model):
    adapter = TimeSliverAttribution(model, "timesliver", max_scaling=False)

    def perturb(inputs):
        noise = 0.1 * torch.ones_like(inputs)
        return noise, inputs - noise

    scores = adapter.attribute(series, target=1)
    unfaithful = infidelity(adapter.forward_func, perturb, series, scores, target=1)
    assert unfaithful.shape == (5,)
    assert torch.isfinite(unfaithful).all()
    with torch.random.fork_rng():
        shaken = sensitivity_max(adapter.attribute, series, target=1, n_perturb_samples=2)
    assert shaken.shape == (5,)


def test_bad_requests(model):
    adapter = TimeSliverAttribution(model)
    with pytest.raises(InvalidInputError, match=r"indices in 0\.\.1"):
        adapter.attribute(series, target=2)
    with pytest.raises(InvalidInputError, match="inputs must have shape"):
        adapter.attribute(series[0])
