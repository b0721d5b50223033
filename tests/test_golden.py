"""Stored logits and attributions, to catch drift that no equation of a test would notice."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from timesliver import NetworkConfig, TimeSliverNetwork

GOLDEN = Path(__file__).parent / "golden"
sys.path.insert(0, str(GOLDEN))
import make  # noqa: E402


@pytest.mark.parametrize("name", list(make.CONFIGS))
def test_outputs_have_not_drifted(name):
    with np.load(GOLDEN / f"{name}.npz", allow_pickle=False) as stored:
        reference = dict(stored)
    network = TimeSliverNetwork(NetworkConfig(**make.SHAPE, **make.CONFIGS[name]))
    network.load_state_dict(
        {
            key.removeprefix("weights/"): torch.from_numpy(value)
            for key, value in reference.items()
            if key.startswith("weights/")
        }
    )
    for key, value in make.outputs(network).items():
        np.testing.assert_allclose(value, reference[key], rtol=1e-4, atol=1e-6, err_msg=key)
