"""From the options of TimeSliver in one row, as jobs and records spell them, to the classifier.

The spelling is part of the hash of every job, so it stays. What it says is said today by
`timesliver.Segments` and the symbolizers:

- ``n_bins`` (5) and ``symbolizer`` ("sax"): the symbols; "raw" is the ablation without any;
- ``segment_sizes``: the sizes; ``segment_shares``: the length of the series over the sizes;
- ``clock``: symbols that tell the time as well;
- ``mirrored``: learning from the series upside down and backwards as well;
- all else is called as it is there;
- ``encoder``: another encoder by its name, or "auto", with its own settings beside.
"""

from __future__ import annotations

import math
from typing import Any

from timesliver import TimeSliverClassifier, encoders, symbols
from timesliver.bench.tasks.pooling import MaxSegments
from timesliver.bench.tasks.raw import RawSegments
from timesliver.encoders import Segments
from timesliver.typing import JSONDict

__all__ = ["CLASSES", "classifier", "encoder"]

#: The classes of TimeSliver that a catalogue may name.
CLASSES = ("TimeSliverClassifier", "MaxPooled", "Chosen")
_OF_THE_CLASSIFIER = ("class_weight", "n_estimators")


def classifier(name: str, options: JSONDict, **machine: Any) -> TimeSliverClassifier:
    """Return an unfitted classifier.

    Parameters
    ----------
    name : str
        One of `CLASSES`. "Chosen" is several settings together, its ``candidates``, and at least
        ``n_members`` networks; version 0.1 chose among the settings by cross-validation
        (``n_folds``), which this one does not do yet.
    options : dict
        Its options in one row.
    **machine
        More parameters of the classifier, such as ``random_state``.

    Examples
    --------
    >>> classifier("TimeSliverClassifier", {"n_bins": 8, "segment_sizes": (4,)})
    TimeSliverClassifier(encoder=Segments(sizes=(4,), symbols=SAX(n_bins=8)))
    """
    if name == "Chosen":
        candidates = [encoder({"step": "auto", **one}) for one in options["candidates"]]
        n_estimators = math.ceil(options.get("n_members", 1) / len(candidates))
        return TimeSliverClassifier(candidates, n_estimators=n_estimators, **machine)
    if "encoder" in options:
        settings = {name: value for name, value in options.items() if name != "encoder"}
        chosen = options["encoder"]
        made = chosen if chosen == "auto" else encoders.create(chosen).set_params(**settings)
        return TimeSliverClassifier(made, **machine)
    own = {name: options[name] for name in _OF_THE_CLASSIFIER if name in options}
    rest = {name: value for name, value in options.items() if name not in own}
    made = encoder(rest, MaxSegments if name == "MaxPooled" else Segments)
    return TimeSliverClassifier(made, **own, **machine)


def encoder(options: JSONDict, kind: type[Segments] = Segments) -> Segments:
    """Return the encoder that options in one row describe.

    Examples
    --------
    >>> encoder({"n_bins": 3, "segment_shares": (16, 4), "clock": True})
    Segments(sizes=(0.0625, 0.25), symbols=[SAX(n_bins=3), Clock(n_bins=3)])
    """
    settings = dict(options)
    symbolizer, n_bins = settings.pop("symbolizer", "sax"), settings.pop("n_bins", 5)
    if symbolizer == "raw":
        kind, symbolizer = RawSegments, "sax"
    settings["symbols"] = symbols.create(symbolizer, n_bins)
    if settings.pop("clock", False):
        settings["symbols"] = [settings["symbols"], symbols.Clock(n_bins)]
    if settings.pop("mirrored", False):
        settings["augment"] = "mirror"
    if "segment_shares" in settings:
        settings["sizes"] = tuple(1 / share for share in settings.pop("segment_shares"))
    if "segment_sizes" in settings:
        settings["sizes"] = settings.pop("segment_sizes")
    return kind(**settings)
