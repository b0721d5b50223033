"""Batches of series as tests make them by hand."""

import torch

from timesliver.network.batch import Batch


def batch_of(values, lengths=None):
    """All values observed; without lengths no case has padding."""
    lengths = [values.shape[2]] * len(values) if lengths is None else lengths
    return Batch(values, torch.ones_like(values, dtype=torch.bool), torch.as_tensor(lengths))
