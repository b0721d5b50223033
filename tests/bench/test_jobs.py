import json
from dataclasses import FrozenInstanceError, fields, replace
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timesliver.bench.jobs import Job, canonical, digest
from timesliver.errors import InvalidParameterError

JOB = Job("unmask", "FordA", "CNN", "lime", "fair", 1, 2, (("percent", 20),), '{"a":1}')


def test_hash_is_part_of_the_format():
    # records of today must be found tomorrow: this may never change
    text = (
        '{"config":"{\\"a\\":1}","dataset":"FordA","explainer":"lime","model":"CNN",'
        '"options":{"percent":20},"seed":1,"setting":"fair","split":2,"task":"unmask"}'
    )
    assert JOB.hash == blake2b(text.encode()).hexdigest()[:16] == "107ce0195d79ce6b"


def test_a_job_is_frozen_and_hashable():
    with pytest.raises(FrozenInstanceError):
        JOB.seed = 3
    assert {JOB, replace(JOB)} == {JOB}


@pytest.mark.parametrize("name", [field.name for field in fields(Job)])
def test_any_change_is_another_job(name):
    other = {"task": "cost", "seed": 7, "split": 7, "options": (("percent", 21),)}
    changed = replace(JOB, **{name: other.get(name, "other")})
    assert changed.hash != JOB.hash
    assert changed != JOB


scalars = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text()
scalars |= st.floats(allow_nan=False, allow_infinity=False)
options = st.dictionaries(st.text(min_size=1), scalars | st.lists(scalars, max_size=3), max_size=4)


@given(options=options, name=st.text())
def test_round_trip_through_json(options, name):
    job = Job("localise", name, "CNN", options=tuple(options.items()))
    again = Job.from_dict(json.loads(json.dumps(job.to_dict())))
    assert again == job
    assert again.hash == job.hash
    assert hash(again) == hash(job)


def test_the_order_and_kind_of_options_make_no_difference():
    a = Job("cost", "x", "y", options=(("sizes", [4, 7]), ("n", 20.0)))
    b = Job("cost", "x", "y", options=(("n", 20), ("sizes", (4, 7))))
    assert a == b
    assert a.hash == b.hash
    assert a.options == (("n", 20), ("sizes", (4, 7)))


def test_label():
    assert JOB.label == "unmask, FordA, lime fair, CNN, seed 1, split 2, percent 20"
    assert Job("train", "FordA", "CNN").label == "train, FordA, CNN, seed 0, split 0"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("forda", True),
        ("LIME-Fair", True),
        ("seed 1", True),
        ("seed 2", False),
        ("shap", False),
        ("model=cnn", True),
        ("dataset=CNN", False),
        ("percent=20", True),
        ("percent=2", False),
        ("m=1", False),
    ],
)
def test_matches(text, found):
    assert JOB.matches(text) is found


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "tarin"}, "task='tarin' is unknown"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"options": (("percent", float("nan")),)}, "finite numbers"),
        ({"options": (("percent", object()),)}, "finite numbers"),
    ],
)
def test_mistakes(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        replace(JOB, **changes)


@pytest.mark.parametrize("content", [{}, {"task": "train"}, JOB.to_dict() | {"colour": 1}])
def test_no_job(content):
    with pytest.raises(InvalidParameterError, match="describes no job"):
        Job.from_dict(content)


def test_canonical():
    assert canonical({"b": [1.0, "ä"], "a": None}) == '{"a":null,"b":[1,"ä"]}'
    assert digest({"a": 0.1}) != digest({"a": 0.2})
    assert len(digest("x", 32)) == 32
