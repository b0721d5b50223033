"""Sleep-EDF: epochs of 30 s of one EEG channel, and the sleep stage of each."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timesliver.datasets.dataset import Dataset
from timesliver.datasets.download import fetch
from timesliver.datasets.places import (
    cache_folder,
    find_in_data_folders,
    read_arrays,
    temporary_folder,
    where_to_put,
    write_arrays,
)
from timesliver.datasets.registry import Info
from timesliver.datasets.splits import balanced, by_blocks
from timesliver.errors import InvalidInputError, MissingExtraError
from timesliver.typing import FloatArray, IntArray

__all__ = ["epochs_of_interest", "load_sleep", "prepare_night", "read_night", "stages"]

URL = "https://physionet.org/files/sleep-edfx/1.0.0/sleep-cassette/"
CHANNEL = "EEG Fpz-Cz"
RATE = 100  # Hz
SECONDS = 30  # an epoch, as it is scored
WAKE = 60  # epochs of wake kept before and after the sleep: half an hour
BLOCK = 20  # epochs that stay together when one night is split: ten minutes
SUBJECTS = {"train": 10, "validation": 3, "test": 7}  # near the shares of the paper's table
STAGES = {
    "Sleep stage W": "W",
    "Sleep stage 1": "N1",
    "Sleep stage 2": "N2",
    "Sleep stage 3": "N3",
    "Sleep stage 4": "N3",
    "Sleep stage R": "REM",
}


def load_sleep(known: Info, split: str, seed: int) -> Dataset:
    """Load one part of the sleep recordings.

    Parameters
    ----------
    known : Info
        ``SleepEDF`` has 20 subjects; they, not the epochs, are dealt to the parts (10, 3 and 7),
        and equally many epochs of each stage are drawn, at most as many as the paper's table
        has. ``SleepEDF_SC4001E0`` is one night of one subject, with all of its epochs; blocks of
        ten minutes are dealt to the parts, because neighbouring epochs are alike.
    split : "train", "validation" or "test"
        Which part.
    seed : int
        Seed of the deal and of the draw.
    """
    if known.name != "SleepEDF":
        night = _night(known.name.removeprefix("SleepEDF_"))
        X, y, position = read_arrays(night, "X", "y", "epoch_index")
        cases = by_blocks(y, position, BLOCK, seed)[split]
        return Dataset(X[cases], y[cases], name=known.name, channel_names=(CHANNEL,))
    nights = [_night(record) for record in records_of(split, seed)]
    labels = [read_arrays(night, "y")[0] for night in nights]
    paper = (known.sizes or {}).get(split)
    cases = balanced(np.concatenate(labels), paper and paper // (known.n_classes or 1), seed)
    starts = np.cumsum([0, *map(len, labels)])
    X = np.empty((len(cases), 1, RATE * SECONDS), dtype=np.float32)
    for night, start, end in zip(nights, starts, starts[1:], strict=False):
        chosen = (cases >= start) & (cases < end)
        X[chosen] = read_arrays(night, "X")[0][cases[chosen] - start]
    return Dataset(X, np.concatenate(labels)[cases], name=known.name, channel_names=(CHANNEL,))


def records_of(split: str, seed: int) -> list[str]:
    """Return the recordings of one part; no subject is in two parts.

    Examples
    --------
    >>> sum(len(records_of(split, seed=0)) for split in ("train", "validation", "test"))
    39
    """
    subjects = sorted({record[:5] for record in _recordings()})  # SC400 is the first of them
    order = np.random.default_rng(seed).permutation(subjects)
    parts = np.split(order, np.cumsum(list(SUBJECTS.values()))[:-1])
    chosen = set(parts[list(SUBJECTS).index(split)].tolist())
    return [record for record in _recordings() if record[:5] in chosen]


def stages(
    onsets: Sequence[float], durations: Sequence[float], descriptions: Sequence[str], n_epochs: int
) -> NDArray[np.str_]:
    """Return the stage of each epoch of a recording, "" where it was not scored.

    Stages 3 and 4 are one, N3. Movement and "?" are not scored.

    Parameters
    ----------
    onsets, durations : sequence of float
        When each stretch begins and how long it is, in seconds.
    descriptions : sequence of str
        What the scorer said of it, like "Sleep stage 2".
    n_epochs : int
        How many epochs the recording has.

    Examples
    --------
    >>> said = ["Sleep stage W", "Sleep stage 4", "Movement time"]
    >>> stages([0, 60, 90], [60, 30, 30], said, n_epochs=4).tolist()
    ['W', 'W', 'N3', '']
    """
    stage = np.full(n_epochs, "", dtype="<U3")
    for onset, duration, description in zip(onsets, durations, descriptions, strict=True):
        first, last = round(onset / SECONDS), round((onset + duration) / SECONDS)
        stage[first:last] = STAGES.get(description, "")
    return stage


def epochs_of_interest(stage: NDArray[np.str_]) -> IntArray:
    """Return the scored epochs from half an hour before the sleep to half an hour after it.

    Examples
    --------
    >>> night = np.array(["W"] * 100 + ["N2"] * 5 + [""] + ["W"] * 100)
    >>> epochs_of_interest(night)[[0, -1]].tolist(), len(epochs_of_interest(night))
    ([40, 164], 124)
    """
    asleep = np.flatnonzero((stage != "W") & (stage != ""))
    if not len(asleep):
        raise InvalidInputError(
            "no epoch of the recording is scored as sleep; check that the hypnogram belongs to it"
        )
    first, last = max(asleep[0] - WAKE, 0), min(asleep[-1] + WAKE, len(stage) - 1)
    chosen: IntArray = first + np.flatnonzero(stage[first : last + 1] != "")
    return chosen


def read_night(signal_file: Path, hypnogram: Path) -> tuple[FloatArray, NDArray[Any], IntArray]:
    """Read the epochs of one recording, in microvolts, with their stages and positions.

    Parameters
    ----------
    signal_file, hypnogram : Path
        The two ``.edf`` files of a recording.
    """
    try:
        import mne
    except ImportError:
        raise MissingExtraError("mne", "eeg") from None
    try:
        raw = mne.io.read_raw_edf(signal_file, include=[CHANNEL], verbose="ERROR")
        notes = mne.read_annotations(hypnogram)
        signal = raw.get_data(verbose="ERROR")
    except Exception as error:  # a damaged file makes mne raise errors of many types
        raise InvalidInputError(
            f"cannot read {signal_file} with {hypnogram.name} ({str(error)[:100]}); get them again"
        ) from None
    if raw.ch_names != [CHANNEL] or raw.info["sfreq"] != RATE:
        raise InvalidInputError(
            f"{signal_file} must have the channel {CHANNEL!r} at {RATE} Hz, got "
            f"{raw.ch_names} at {raw.info['sfreq']} Hz"
        )
    length = RATE * SECONDS
    n_epochs = signal.shape[1] // length
    stage = stages(notes.onset, notes.duration, notes.description, n_epochs)
    chosen = epochs_of_interest(stage)
    X = signal[:, : n_epochs * length].reshape(n_epochs, 1, length)[chosen] * 1e6
    return X.astype(np.float32), stage[chosen], chosen


def prepare_night(record: str, url: str = URL) -> Path:
    """Make the cached file of one recording, from its two ``.edf`` files or by downloading them.

    Parameters
    ----------
    record : str
        Like "SC4001E0".
    url : str
        The folder that holds the files.
    """
    target = cache_folder() / "eeg" / f"SleepEDF_{record}.npz"
    files = _recordings()[record]
    with temporary_folder() as folder:
        paths = []
        for name, sha1 in files.items():
            path = find_in_data_folders(f"eeg/{name}")
            if path is None:
                path = folder / name
                place = where_to_put(f"eeg/{name}")
                remedy = f"without a network, put the file at {place}"
                fetch(url + name, path, f"sha1:{sha1}", remedy=remedy)
            paths.append(path)
        X, y, position = read_night(*paths)
    write_arrays(target, X=X, y=y, epoch_index=position)
    return target


def _night(record: str) -> Path:
    return find_in_data_folders(f"eeg/SleepEDF_{record}.npz") or prepare_night(record)


@cache
def _recordings() -> dict[str, dict[str, str]]:
    """Return the signal file and the hypnogram of each recording, with their checksums."""
    table = resources.files("timesliver.datasets").joinpath("sleepedf.csv").read_text("utf-8")
    return {
        row["record"]: {
            row["signal"]: row["signal_sha1"],
            row["hypnogram"]: row["hypnogram_sha1"],
        }
        for row in csv.DictReader(table.splitlines())
    }
