"""What several explainers need: a case many times, its seed, and captum."""

from __future__ import annotations

import hashlib
from typing import Any

import torch

from timesliver.errors import MissingExtraError
from timesliver.network.batch import Batch

__all__ = ["captum_methods", "case_seed", "repeated"]


def repeated(one: Batch, n: int) -> Batch:
    """Return a single case n times."""
    return one[torch.zeros(n, dtype=torch.long)]


def case_seed(inputs: Batch, case: int, seed: int) -> int:
    """Return a seed that follows from another one and the values of a case, nothing else."""
    content = inputs.values[case, :, : int(inputs.lengths[case])]
    digest = hashlib.blake2b(
        content.cpu().contiguous().numpy().tobytes(),
        digest_size=8,
        key=seed.to_bytes(8, "little"),
    )
    return int.from_bytes(digest.digest(), "little") >> 1


def captum_methods() -> Any:
    """Return the module ``captum.attr``, which is an extra."""
    try:
        import captum.attr
    except ImportError:
        raise MissingExtraError("captum", "explain") from None
    return captum.attr
