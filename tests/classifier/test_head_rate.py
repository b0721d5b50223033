"""Larger steps for the last layer than for the segment encoder."""

import numpy as np
import pytest
import torch

from classifier.conftest import bumps, small
from timesliver import TimeSliverClassifier
from timesliver.errors import InvalidParameterError


def first_step(head_rate):
    """Return the weights before and after one step of Adam, by name."""
    X, y, _ = bumps(n_cases=9)
    model = small(
        max_epochs=1, batch_size=9, validation_fraction=0, head_rate=head_rate, random_state=3
    )
    before = {}
    best = model._best

    def watched(candidates, *others):
        [(choice, network)] = candidates
        before.update({name: w.detach().clone() for name, w in network.named_parameters()})
        return best([(choice, network)], *others)

    model._best = watched
    model.fit(X, y)
    after = dict(model.network_.named_parameters())
    return {name: after[name].detach() - before[name] for name in before}


def test_the_first_step_of_the_head_is_that_much_larger(monkeypatch):
    monkeypatch.setattr("timesliver.training.descent._FEWEST_STEPS", 1)  # one step per epoch
    once, often = first_step(1.0), first_step(30.0)
    head = [name for name in once if name == "bias" or ".terms." in name]
    assert len(head) == 3
    assert len(once) > 3
    for name, step in once.items():
        moved = step.abs() > 5e-3  # a step of Adam is the rate, 0.01, where there is a gradient
        assert moved.any()
        factor = 30 if name in head else 1
        torch.testing.assert_close(often[name][moved], factor * step[moved], rtol=1e-3, atol=1e-5)


def test_the_rate_of_one_changes_nothing():
    X, y, _ = bumps(n_cases=20)
    plain, one = small(max_epochs=3).fit(X, y), small(max_epochs=3, head_rate=1).fit(X, y)
    np.testing.assert_array_equal(plain.logits(X), one.logits(X))
    assert not np.allclose(plain.logits(X), small(max_epochs=3, head_rate=9).fit(X, y).logits(X))


@pytest.mark.parametrize("rate", [0, -1.0, np.inf, np.nan, "30", None])
def test_impossible_rates(rate):
    X, y, _ = bumps(n_cases=8)
    with pytest.raises(InvalidParameterError, match="head_rate must be a number, above 0; got"):
        small(head_rate=rate).fit(X, y)


def test_saved_and_loaded(tmp_path):
    X, y, _ = bumps(n_cases=20)
    model = small(max_epochs=2, head_rate=30.0).fit(X, y)
    model.save(tmp_path / "model")
    again = TimeSliverClassifier.load(tmp_path / "model")
    assert again.encoder.head_rate == 30.0
    np.testing.assert_array_equal(again.logits(X), model.logits(X))
