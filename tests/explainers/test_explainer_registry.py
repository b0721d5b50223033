import re
import subprocess
import sys

import numpy as np
import pytest

from timesliver import explainers
from timesliver.errors import InvalidParameterError
from timesliver.explainers import AnyExplainer, create, find, names
from timesliver.explainers.registry import GROUP

OURS = [
    "random",
    "grad_cam",
    "lime",
    "limesegment",
    "kernel_shap",
    "integrated_gradients",
    "gradient_shap",
    "deep_lift",
    "deep_lift_shap",
    "attention_tracing",
    "grad_sam",
    "color",
    "timex_plus_plus",
    "timesliver",
    "additive",
]


def mean_of_channels(X):
    return X.mean(2)


def test_ours():
    assert names()[: len(OURS)] == OURS


@pytest.mark.parametrize("name", OURS)
def test_classes_are_called_as_registered(name):
    cls = find(name)
    assert issubclass(cls, AnyExplainer)
    assert cls.name == name


def test_classes_can_be_imported_and_are_only_then():
    for cls in map(find, OURS):
        assert getattr(explainers, cls.__name__) is cls
        assert cls.__name__ in explainers.__all__
        assert cls.__name__ in dir(explainers)
    with pytest.raises(AttributeError, match="no attribute 'Saliency'"):
        explainers.Saliency  # noqa: B018
    program = """
import sys
import timesliver.explainers
assert "timesliver.explainers.lime" not in sys.modules
from timesliver.explainers import LIME
assert LIME.name == "lime"
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_unknown_names_and_options():
    with pytest.raises(
        InvalidParameterError, match=r"no explainer 'saliency'; choose one of random, grad_cam,"
    ):
        create("saliency", mean_of_channels)
    with pytest.raises(
        InvalidParameterError,
        match=r"'depth' is not an option of the explainer 'random'; its options are setting, "
        r"random_state, batch_size, verbose",
    ):
        create("random", mean_of_channels, depth=3)
    with pytest.raises(InvalidParameterError, match=r"its options are objective, setting,"):
        create("color", mean_of_channels, mode="last")


MODULE = """
from typing import ClassVar
from timesliver.explainers import Explainer, Scores

class Largest(Explainer):
    "The distance of each value from zero."
    name = "{name}"
    has_sign: ClassVar[bool] = False

    def __init__(self, model, *, power=1, **shared):
        self.power = power
        super().__init__(model, **shared)

    def _scores(self, inputs, cases):
        return Scores(inputs.values.abs() ** self.power)

something_else = 3
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package as pip leaves it: a module, and a folder that says what is in it."""

    def install(package, entries):
        (tmp_path / f"{package}.py").write_text(MODULE.format(name=entries[0][0]))
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {package}:{thing}\n" for name, thing in entries]
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{''.join(lines)}")
        monkeypatch.syspath_prepend(tmp_path)

    return install


def test_an_explainer_of_another_package(installed):
    before = names()
    installed("largest_values", [("largest", "Largest")])
    assert names() == [*before, "largest"]
    assert find("largest").__module__ == "largest_values"
    X = np.random.default_rng(0).normal(size=(5, 2, 7)).astype(np.float32)
    found = create("largest", mean_of_channels, power=2, batch_size=3).explain(X)
    np.testing.assert_allclose(found.positive_by_channel, X**2, rtol=1e-6)
    assert (found.method, found.has_sign, found.has_channels) == ("largest", False, True)
    with pytest.raises(InvalidParameterError, match="its options are power, setting"):
        create("largest", mean_of_channels, size=2)


def test_another_package_cannot_take_our_names(installed):
    installed("cuckoo_values", [("random", "Largest")])
    assert names().count("random") == 1
    assert find("random").__module__ == "timesliver.explainers.chance"


def test_something_else_registered(installed):
    installed("odd_values", [("odd", "something_else")])
    message = "the explainer 'odd' is registered as 3, which is no subclass of Explainer"
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        find("odd")
