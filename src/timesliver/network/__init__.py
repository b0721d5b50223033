"""The network of the paper, one file per module.

`segments` (Module I), `composition` (Module II.b), `interaction` (Module III), `head`, and
`model`, which puts them together.
"""

from timesliver.network.composition import Batch
from timesliver.network.model import NetworkConfig, TimeSliverNetwork

__all__ = ["Batch", "NetworkConfig", "TimeSliverNetwork"]
