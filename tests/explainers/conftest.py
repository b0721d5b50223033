import pytest
import torch


@pytest.fixture(autouse=True, scope="module")
def _same_weights_in_every_run_of_a_file():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _same_weights_in_every_run():
    torch.manual_seed(0)
