"""One self-contained, interactive page about a model and what it saw in some cases.

`cases` reads the explanations, `choosing` says which to show, `packing` makes them small, `sums`
says what adds up, and `page` writes all into one file together with the template, the style and the
script that lie beside it.
"""

from timesliver.report.choosing import choose_cases
from timesliver.report.page import write

__all__ = ["choose_cases", "write"]
