"""Tables of results: our numbers, the paper's beside them, and what the difference is worth.

`runs` reads the records, `spec` what a suite wants, `build` puts the two together, `marks` and
`significance` compare, `formats` writes, `export` gives the results to other programs.
"""

from timesliver.bench.tables.build import appendix, build
from timesliver.bench.tables.cells import Cell, Column, Row, Table
from timesliver.bench.tables.export import write_results

__all__ = ["Cell", "Column", "Row", "Table", "appendix", "build", "write_results"]
