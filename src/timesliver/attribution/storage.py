"""The parts of an `Attribution` in one npz file, without pickle."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from timesliver.errors import InvalidInputError
from timesliver.io import decode_labels, encode_labels, replacing

__all__ = ["FORMAT", "read", "write"]

#: Number of the file format. A file with a higher number was written by a later version.
FORMAT = 3

_REQUIRED = {"positive_by_channel", "negative_by_channel", "logit", "base", "target"}
_OPTIONAL = {
    "positive_by_symbol",
    "negative_by_symbol",
    "series",
    "probabilities",
    "seconds",
    "forward_passes",
    "case",
}
_FLAGS = ("has_sign", "has_channels")


def write(path: str | os.PathLike[str], parts: dict[str, Any]) -> None:
    """Write arrays, class labels and method.

    Parameters
    ----------
    path : str or path
        The file to write, with this very name.
    parts : dict
        The fields of an `Attribution` by name; those that are None are left out.
    """
    arrays = {name: np.asarray(part) for name, part in parts.items() if part is not None}
    header: dict[str, Any] = {"format": FORMAT, "method": str(arrays.pop("method"))}
    header["classes"] = encode_labels(arrays.pop("classes"))
    header |= {name: bool(arrays.pop(name)) for name in _FLAGS}
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise InvalidInputError(f"{name} must hold numbers to be saved, got Python objects")
    with replacing(path) as draft, draft.open("wb") as file:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)  # type: ignore[arg-type]


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what `write` wrote; the fields of an `Attribution` by name.

    Nothing in the file is run, whatever it holds.
    """
    try:
        with Path(path).open("rb") as file:
            if not zipfile.is_zipfile(file):
                raise InvalidInputError(
                    f"{path} is not an npz file, or it is cut short; expected one written by "
                    f"Attribution.save"
                )
            file.seek(0)
            with np.lib.npyio.NpzFile(file, allow_pickle=False) as archive:
                return _parts(path, archive)
    except FileNotFoundError:
        raise InvalidInputError(f"there is no file {path}; check the name") from None
    except InvalidInputError:
        raise
    except Exception as error:  # zipfile, zlib, numpy and json each have their own
        raise InvalidInputError(
            f"{path} cannot be read as an attribution ({error}); it may be damaged or of another "
            f"kind, expected one written by Attribution.save"
        ) from error


def _parts(path: str | os.PathLike[str], archive: Any) -> dict[str, Any]:
    names = set(archive.files)
    if "header" not in names:
        raise InvalidInputError(
            f"{path} is an npz file but holds no attribution (its arrays are "
            f"{', '.join(sorted(names)) or 'none'}); expected one written by Attribution.save"
        )
    header = json.loads(str(archive["header"]))
    version = header.get("format") if isinstance(header, dict) else None
    if not isinstance(version, int) or version < 1:
        raise InvalidInputError(f"{path} has a header without a format number; it is damaged")
    if version > FORMAT:
        raise InvalidInputError(
            f"{path} has format {version}, but this version reads formats up to {FORMAT}; "
            f"install a newer timesliver"
        )
    renamed = {"bias": "base"} if version < 3 else {}
    stored = {renamed.get(name, name): name for name in names - {"header"}}
    names = set(stored)
    if not _REQUIRED <= names <= _REQUIRED | _OPTIONAL:
        raise InvalidInputError(
            f"{path} holds the wrong arrays: missing are "
            f"{', '.join(sorted(_REQUIRED - names)) or 'none'}, unknown are "
            f"{', '.join(sorted(names - _REQUIRED - _OPTIONAL)) or 'none'}"
        )
    parts = {name: archive[of] for name, of in stored.items()}
    for name in names:
        whole = name in ("target", "case")
        expected = np.integer if whole else np.floating
        if not np.issubdtype(parts[name].dtype, expected):
            raise InvalidInputError(
                f"{name} in {path} has the type {parts[name].dtype}, expected "
                f"{'whole' if whole else 'real'} numbers; it is damaged"
            )
    return parts | {
        "classes": decode_labels(header.get("classes")),
        "method": str(header.get("method")),
        **{name: bool(header.get(name, True)) for name in _FLAGS},
    }
