"""The ten animal classes of ESC-50 as series of mel-frequency cepstral coefficients."""

from __future__ import annotations

import csv
import hashlib
import wave
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from timesliver.datasets.dataset import Dataset
from timesliver.datasets.download import fetch, show_status
from timesliver.datasets.places import (
    cache_folder,
    find_in_data_folders,
    read_arrays,
    temporary_folder,
    where_to_put,
    write_arrays,
)
from timesliver.datasets.registry import Info
from timesliver.datasets.splits import at_random
from timesliver.errors import InvalidInputError, MissingExtraError
from timesliver.typing import FloatArray, IntArray

__all__ = ["SETTINGS", "download_animals", "load_animals", "mfcc"]

URL = "https://github.com/karolpiczak/ESC-50/archive/refs/heads/master.zip"
FOLDER = "audio/esc50-animals"
COLUMNS = ("filename", "fold", "target", "category", "src_file")
CATEGORIES = ("dog", "rooster", "pig", "cow", "frog", "cat", "hen", "insects", "sheep", "crow")
PER_CLASS = 40
SECONDS = 5
FOLDS = {"train": (1, 2, 3), "validation": (4,), "test": (5,)}
# Steps of 10 ms give the paper's 501 frames; it does not say how long its windows are.
SETTINGS: dict[str, Any] = {
    "sr": 16_000,
    "n_mfcc": 40,
    "n_mels": 40,
    "n_fft": 400,
    "hop_length": 160,
    "center": True,
    "norm": "ortho",
}
FRAMES = SECONDS * 16_000 // 160 + 1


def load_animals(known: Info, split: str, seed: int) -> Dataset:
    """Load one part of the animal sounds.

    Parameters
    ----------
    known : Info
        ``ESC50_animals`` splits by ESC-50's folds (1 to 3, 4, 5) and keeps the clips that were cut
        from one recording together. ``ESC50_animals_paper`` draws the paper's 280/60/60 clips
        at random, by class; clips of one recording may then be in several parts.
    split : "train", "validation" or "test"
        Which part.
    seed : int
        Seed of the random draw.
    """
    folder = find_in_data_folders(FOLDER) or download_animals()
    meta = _read_meta(folder)
    X, y = _features(folder, meta)
    if known.name.endswith("_paper"):
        sizes = {part: size or 0 for part, size in (known.sizes or {}).items()}
        cases: IntArray = at_random(y, sizes, seed)[split]
    else:
        cases = np.flatnonzero(np.isin(_folds(meta), FOLDS[split]))
    names = tuple(f"mfcc {i}" for i in range(X.shape[1]))
    return Dataset(X[cases], y[cases], name=known.name, channel_names=names)


def mfcc(path: Path) -> FloatArray:
    """Return the coefficients of a sound file, of shape (40, n_frames), at 16 kHz."""
    try:
        import librosa
        import soundfile
    except ImportError as error:
        raise MissingExtraError(error.name or "librosa", "audio") from None
    try:
        sound, rate = soundfile.read(path, dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, OSError) as error:
        raise InvalidInputError(
            f"cannot read the sound file {path} ({str(error)[:100]}); get it again"
        ) from None
    sound = librosa.resample(sound.mean(axis=1), orig_sr=rate, target_sr=SETTINGS["sr"])
    coefficients: FloatArray = librosa.feature.mfcc(y=sound, **SETTINGS)
    return coefficients


def download_animals(url: str = URL, checksum: str | None = None) -> Path:
    """Download ESC-50 (600 MB) and keep its animal clips in the cache.

    GitHub packs the archive anew now and then, so that it has no lasting checksum. What arrives is
    checked by what it holds instead: 40 clips of each of ten classes, of 5 s each.

    Parameters
    ----------
    url : str
        Where the archive is.
    checksum : str or None
        What the archive must hash to, like ``"sha256:..."``, if you know it.

    Returns
    -------
    Path
        The folder with the clips and ``meta.csv``.
    """
    target = cache_folder() / FOLDER
    remedy = (
        f"without a network, put the 400 animal clips of ESC-50 and a table meta.csv (columns "
        f"{', '.join(COLUMNS)}) into {where_to_put(FOLDER)}"
    )
    with temporary_folder() as folder:
        fetch(url, folder / "esc50.zip", checksum, remedy=remedy)
        clips = folder / "clips"
        clips.mkdir()
        try:
            with zipfile.ZipFile(folder / "esc50.zip") as archive:
                _unpack(archive, clips)
            for row in _read_meta(clips):
                with wave.open(str(clips / row["filename"])) as clip:
                    if clip.getnframes() != SECONDS * clip.getframerate():
                        raise InvalidInputError(f"{row['filename']} is not {SECONDS} s long")
        except (InvalidInputError, zipfile.BadZipFile, wave.Error, OSError, EOFError) as error:
            raise InvalidInputError(
                f"the download of {url} is not what it should be ({error}); try again, or {remedy}"
            ) from None
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():  # another process may have been faster
            clips.rename(target)
    return target


def _unpack(archive: zipfile.ZipFile, folder: Path) -> None:
    """Write the animal clips of ESC-50's archive, and the table of them, to a folder."""
    members = {PurePosixPath(name).name: name for name in archive.namelist()}
    if "esc50.csv" not in members:
        raise InvalidInputError("it holds no table esc50.csv")
    table = archive.read(members["esc50.csv"]).decode("utf-8").splitlines()
    rows = [row for row in csv.DictReader(table) if row.get("category") in CATEGORIES]
    with (folder / "meta.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        name = row["filename"]
        if name not in members:
            raise InvalidInputError(f"it lacks the clip {name}")
        (folder / PurePosixPath(name).name).write_bytes(archive.read(members[name]))


def _read_meta(folder: Path) -> list[dict[str, str]]:
    """Return the rows of the table of clips, after a look at all it must hold."""
    path = folder / "meta.csv"
    if not path.is_file():
        raise InvalidInputError(
            f"{folder} holds no meta.csv, a table with the columns {', '.join(COLUMNS)}"
        )
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if not rows or any(row.get(column) in (None, "") for row in rows for column in COLUMNS):
        raise InvalidInputError(f"{path} must have the columns {', '.join(COLUMNS)}, all filled")
    counts = {name: sum(row["category"] == name for row in rows) for name in CATEGORIES}
    if len(rows) != len(CATEGORIES) * PER_CLASS or set(counts.values()) != {PER_CLASS}:
        raise InvalidInputError(
            f"{path} must list {PER_CLASS} clips of each of {', '.join(CATEGORIES)}; "
            f"it lists {len(rows)} clips: {counts}"
        )
    missing = [row["filename"] for row in rows if not (folder / row["filename"]).is_file()]
    if missing:
        raise InvalidInputError(f"{folder} lacks {len(missing)} clips, the first is {missing[0]}")
    return rows


def _folds(meta: list[dict[str, str]]) -> list[int]:
    """Return the fold of each clip: the one that holds most of its recording's clips.

    Two recordings of a hen and a rooster are spread over two folds of ESC-50.
    """
    folds: dict[str, list[int]] = {}
    for row in meta:
        folds.setdefault(row["src_file"], []).append(int(row["fold"]))
    most = {
        source: max(sorted(set(of_clips)), key=of_clips.count) for source, of_clips in folds.items()
    }
    return [most[row["src_file"]] for row in meta]


def _features(folder: Path, meta: list[dict[str, str]]) -> tuple[FloatArray, np.ndarray]:
    """Return coefficients and labels of all clips, computed once for a folder of clips."""
    clips = [(row["filename"], (folder / row["filename"]).stat().st_size) for row in meta]
    digest = hashlib.sha256(repr((sorted(SETTINGS.items()), clips)).encode()).hexdigest()[:12]
    stored = cache_folder() / "audio" / f"esc50-animals-mfcc-{digest}.npz"
    if not stored.is_file():
        X = np.empty((len(meta), SETTINGS["n_mfcc"], FRAMES), dtype=np.float32)
        with show_status(f"Computing the MFCC of {len(meta)} clips"):
            for case, row in enumerate(meta):
                coefficients = mfcc(folder / row["filename"])
                if coefficients.shape != X.shape[1:]:
                    raise InvalidInputError(
                        f"{folder / row['filename']} gives {coefficients.shape[1]} frames, "
                        f"expected {FRAMES}; clips must be {SECONDS} s long"
                    )
                X[case] = coefficients
        write_arrays(stored, X=X, y=np.array([row["category"] for row in meta]))
    X, y = read_arrays(stored, "X", "y")
    return X, y
