"""Names for the kinds of arrays that travel through the package."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BoolArray", "CodeArray", "FloatArray", "IntArray", "JSONDict", "Shape"]

FloatArray = NDArray[np.floating[Any]]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.integer[Any]]
#: Symbol codes, uint8 or int16: 0 is "no symbol", 1..n_symbols are the symbols.
CodeArray = NDArray[np.integer[Any]]
JSONDict = dict[str, Any]
Shape = tuple[int, ...]
