"""Files: they appear whole or not at all, and reading one runs no code."""

from __future__ import annotations

import json
import math
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from timesliver.errors import InvalidInputError
from timesliver.typing import JSONDict

__all__ = [
    "as_json",
    "below",
    "decode_labels",
    "encode_labels",
    "read_tensors",
    "replacing",
    "write_tensors",
]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of a new file to write; it takes the place of ``path`` when all went well.

    Until then an older file of that name stays as it is, and a failure leaves nothing behind.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "notes.txt") as draft:
    ...         _ = draft.write_text("all of it")
    ...     [file.name for file in Path(folder).iterdir()]
    ['notes.txt']
    """
    target = Path(path)
    if target.is_dir():
        raise InvalidInputError(f"{target} is a folder; give the name of a file to write")
    if not target.parent.is_dir():
        raise InvalidInputError(
            f"cannot write {target}: the folder {target.parent} does not exist; make it first"
        )
    draft = target.with_name(f".{target.stem[:100]}.{secrets.token_hex(4)}{target.suffix}")
    try:
        yield draft
        with draft.open("rb+") as file:
            os.fsync(file.fileno())
        draft.replace(target)
    except PermissionError as error:
        raise InvalidInputError(
            f"cannot write {target}: {error.strerror}; choose another place"
        ) from error
    finally:
        draft.unlink(missing_ok=True)


def as_json(value: Any) -> Any:
    """Return a value as JSON knows it: arrays as lists, paths as text, NaN and infinity as null.

    Examples
    --------
    >>> as_json({"a": np.float32(0.5), "b": (np.nan, Path("x"))})
    {'a': 0.5, 'b': [None, 'x']}
    """
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value) if isinstance(value, Path) else value


def encode_labels(labels: NDArray[Any]) -> list[Any]:
    """Return class labels as JSON values that `decode_labels` turns back into the same array.

    Examples
    --------
    >>> decode_labels(encode_labels(np.array([False, True])))
    array([False,  True])
    """
    values = [v.item() if isinstance(v, np.generic) else v for v in labels.tolist()]
    for value in values:
        if not isinstance(value, str | int | float):  # a bool is an int
            raise InvalidInputError(
                f"the class label {value!r} is a {type(value).__name__}, which cannot be saved; "
                f"use labels that are text, numbers, True or False"
            )
    return ["object" if labels.dtype.kind in "OT" else labels.dtype.str, values]


def decode_labels(encoded: Any) -> NDArray[Any]:
    """Return the array of class labels that `encode_labels` was given."""
    try:
        dtype, values = encoded
        known = re.fullmatch(r"object|[<>|][biufU]\d{1,5}", dtype)
        if known and all(isinstance(value, str | int | float) for value in values):
            return np.array(values, dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidInputError("the class labels are damaged; save the file again")


def write_tensors(
    path: str | os.PathLike[str], tensors: dict[str, NDArray[Any]], header: JSONDict
) -> None:
    """Write arrays and a description to one safetensors file."""
    with replacing(path) as draft:
        whole = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
        draft.write_bytes(save(whole, metadata={"timesliver": json.dumps(header)}))


def below(tensors: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return the tensors whose names begin with a prefix, by the rest of their names."""
    return {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}


def read_tensors(path: str | os.PathLike[str]) -> tuple[dict[str, NDArray[Any]], JSONDict]:
    """Read what `write_tensors` wrote; nothing in the file is ever executed."""
    if not Path(path).is_file():
        raise InvalidInputError(f"there is no model file {path}")
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})["timesliver"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except KeyError as error:
        raise InvalidInputError(
            f"{path} holds tensors, but not a timesliver model; save one with clf.save(path)"
        ) from error
    except (SafetensorError, ValueError, TypeError, RecursionError, OSError) as error:
        raise InvalidInputError(
            f"{path} is not a whole safetensors file ({str(error).splitlines()[0]}); it may be "
            f"cut short or of another kind"
        ) from error
    if not isinstance(header, dict):
        raise InvalidInputError(f"{path} has a damaged header; save the model again")
    return tensors, header
