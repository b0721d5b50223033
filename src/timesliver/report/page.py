"""Everything the page shows, put into the template and written as one file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment

from timesliver.errors import InvalidInputError
from timesliver.io import replacing
from timesliver.report import packing
from timesliver.report.cases import Cases, Labels, read_cases
from timesliver.report.choosing import choose_cases
from timesliver.typing import IntArray, JSONDict

if TYPE_CHECKING:
    from timesliver.attribution.result import Attribution

__all__ = ["write"]

_MOST_CONFUSED = 30
_MOST_SETTINGS = 200
_LONGEST_SETTING = 400


def write(
    path: str | os.PathLike[str],
    explanations: Sequence[Attribution],
    *,
    y: Any = None,
    title: str | None = None,
    settings: Mapping[str, Any] | None = None,
    overall: tuple[Any, Any] | None = None,
) -> Path:
    """Write one self-contained page to look at cases and their explanations.

    The page needs no network and stays below about 8 MB: long series are thinned for display,
    and of very many cases some are shown. The page says so; the data are never changed.

    Parameters
    ----------
    path : str or path
        The file to write. An older one is replaced, all at once.
    explanations : sequence of Attribution
        One, or one for each class over the same cases; then the page can change the class. The
        page numbers the cases as the first one does.
    y : array of shape (n_cases,), optional
        True labels of these cases; None or NaN where one is not known.
    title : str, optional
        Heading of the page.
    settings : dict, optional
        Settings of the model, shown as a table.
    overall : pair of label arrays, optional
        True and predicted labels of a whole test set for the confusion matrix. By default it is
        made of these cases.

    Returns
    -------
    Path
        Where the page is.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from timesliver import Attribution
    >>> evidence = np.zeros((2, 1, 50))
    >>> evidence[:, 0, 20:30] = 1
    >>> explanation = Attribution(
    ...     evidence,
    ...     0 * evidence,
    ...     logit=np.ones(2),
    ...     base=np.zeros(2),
    ...     target=np.array([0, 1]),
    ...     classes=np.array(["walk", "run"]),
    ...     method="additive",
    ... )
    >>> with TemporaryDirectory() as folder:
    ...     write(Path(folder) / "report.html", [explanation], y=["walk", "run"]).name
    'report.html'
    """
    cases = read_cases(explanations, y)
    if overall is None:
        known = cases.true >= 0
        true, predicted = cases.true[known], cases.predicted[known]
    else:
        true, predicted = _overall(overall, cases.labels)
    shape = cases.first.positive_by_channel.shape
    numbers = cases.first.case
    assert numbers is not None
    detail, n_kept = packing.choose_detail(shape, len(explanations), packing.BUDGET)
    kept = choose_cases(cases.predicted, cases.mistaken, n_kept)
    title = " ".join(title.split())[:200] if title else "What the model saw"
    data: JSONDict = {
        "labels": cases.labels.texts,
        "evidence_bytes": int(detail.dtype[1]),
        "cases": [
            packing.pack_case(cases, int(case), detail) | {"id": int(numbers[case])}
            for case in kept
        ],
    }
    explained = [entry for case in data["cases"] for entry in case["explained"]]
    page = _render(
        title=title,
        data=data,
        method=cases.first.method,
        adds_up=all(entry["sum"] is not None for entry in explained),
        shown=_shown(cases, kept, detail),
        confusion=_confusion(true, predicted, cases.labels),
        of_these_cases=overall is None,
        settings=[(str(key)[:100], _text(value)) for key, value in (settings or {}).items()][
            :_MOST_SETTINGS
        ],
        labels=cases.labels.texts,
        has_truth=bool((cases.true >= 0).any()),
        has_probabilities=cases.first.probabilities is not None,
    )
    with replacing(path) as draft:
        draft.write_bytes(page.encode("utf-8", "replace"))
    return Path(path)


def _overall(overall: tuple[Any, Any], labels: Labels) -> tuple[IntArray, IntArray]:
    """Return the labels of a whole test set as numbers, where both are known."""
    if not isinstance(overall, Sequence) or len(overall) != 2:
        raise InvalidInputError(
            "overall must be a pair: the true and the predicted labels of a test set"
        )
    true = labels.indices(overall[0], "the true labels of overall")
    predicted = labels.indices(overall[1], "the predicted labels of overall", len(true))
    known = (true >= 0) & (predicted >= 0)
    return true[known], predicted[known]


def _shown(cases: Cases, kept: IntArray, detail: packing.Detail) -> list[str]:
    """Say in sentences what of the data is not on the page."""
    _, n_channels, _ = cases.first.positive_by_channel.shape
    notes = []
    if len(kept) < len(cases):
        mistakes = int(cases.mistaken.sum())
        which = f", {int(cases.mistaken[kept].sum())} of {mistakes} mistakes" if mistakes else ""
        notes.append(f"{len(kept):,} of {len(cases):,} cases are shown{which}.")
    if detail.classes < len(cases.explanations):
        notes.append(
            f"{detail.classes} of {len(cases.explanations)} classes are explained for each case, "
            f"first the predicted and the true one."
        )
    if n_channels > packing.MOST_CHANNELS:
        notes.append(
            f"{packing.MOST_CHANNELS} of {n_channels:,} channels are shown for each case: "
            f"those with the most evidence."
        )
    return notes


def _confusion(true: IntArray, predicted: IntArray, labels: Labels) -> JSONDict | None:
    """Count true against predicted labels, or return None where no true label is known."""
    if not len(true):
        return None
    n_labels = len(labels.texts)
    of_class = np.bincount(true, minlength=n_labels)
    of_prediction = np.bincount(predicted, minlength=n_labels)
    right = np.bincount(true[true == predicted], minlength=n_labels)
    used = np.flatnonzero((of_class + of_prediction > 0) | (np.arange(n_labels) < labels.n_classes))
    if len(used) > _MOST_CONFUSED:
        mistakes = of_class + of_prediction - 2 * right
        used = np.sort(used[np.argsort(-mistakes[used], kind="stable")[:_MOST_CONFUSED]])
    recall = [right[i] / of_class[i] if of_class[i] else None for i in range(n_labels)]
    rows = []
    for i in used:
        counts = np.bincount(predicted[true == i], minlength=n_labels)
        cells = [
            {"label": int(j), "count": int(counts[j]), "share": counts[j] / max(1, of_class[i])}
            for j in used
        ]
        rows.append({"label": int(i), "cells": cells, "recall": recall[i]})
    return {
        "rows": rows,
        "n_labels": n_labels,
        "right": int(right.sum()),
        "n_cases": len(true),
        "mean_recall": float(np.mean([r for r in recall if r is not None])),
    }


def _text(value: Any) -> str:
    """Return a setting as short text."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = str(value)
    return text if len(text) <= _LONGEST_SETTING else text[: _LONGEST_SETTING - 1] + "…"


def _render(**content: Any) -> str:
    """Fill the template; the environment escapes all text and the JSON."""
    folder = resources.files("timesliver.report")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    style, painting, script, page = (
        (folder / name).read_text("utf-8")
        for name in ("style.css", "painting.js", "script.js", "page.html")
    )
    return environment.from_string(page).render(
        style=style, painting=painting, script=script, **content
    )
