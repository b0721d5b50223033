"""Time series classification that explains itself by a symbolic-linear decomposition."""

from timesliver.attribution import Attribution, explain
from timesliver.network import Batch, NetworkConfig, TimeSliverNetwork

__version__ = "0.1.0"
__all__ = ["Attribution", "Batch", "NetworkConfig", "TimeSliverNetwork", "explain"]
