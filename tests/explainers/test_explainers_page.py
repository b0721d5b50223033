"""The page on explainers: its code runs, and its table says what the classes say."""

import re
from pathlib import Path

import pytest

from timesliver.explainers import find, names
from timesliver.explainers.baselines import AgainstTraining

PAGE = (Path(__file__).parents[2] / "docs" / "explainers.md").read_text(encoding="utf-8")
ROW = r"^\| `(\w+)` \| (.*?) \| (\w+) \| (\w+) \| (.*?) ?\| ([\w ]*?) ?\|$"
ROWS = re.findall(ROW, PAGE, re.MULTILINE)


def test_the_code_runs():
    pytest.importorskip("captum")
    space = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        exec(compile(block, "explainers.md", "exec"), space)  # noqa: S102 - our own page
    assert space["why"].positive.shape == (3, 200)


def test_the_table_names_all():
    assert [row[0] for row in ROWS] == names()


@pytest.mark.parametrize(("name", "explains", "sign", "channels", "settings", "fit"), ROWS)
def test_the_table_is_right(name, explains, sign, channels, settings, fit):
    cls = find(name)
    assert (sign == "yes") == cls.has_sign
    assert (channels == "yes") == cls.has_channels
    assert (settings == "fair, paper") == cls.has_settings
    assert fit.startswith("needed") == cls.needs_fit
    assert (fit == "needed if fair") == issubclass(cls, AgainstTraining)
    if explains.startswith(("gradients", "networks")):
        assert cls.needs_gradients
    if explains.startswith("any model"):
        assert not cls.needs_gradients
