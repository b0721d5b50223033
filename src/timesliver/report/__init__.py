"""One self-contained, interactive page about a model and what it saw in some cases.

`cases` reads the explanations, `packing` makes them small, `page` writes them into one file
together with the template, the style and the script that lie beside it.
"""

from timesliver.report.page import write

__all__ = ["write"]
