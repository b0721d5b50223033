"""The paper's architecture table: our counts and the differences add up to the printed ones."""

import pytest

from benchmarks.parameters import ROWS


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_differences_explain_the_printed_count(row):
    assert row.ours() + sum(count for _, count in row.differences) == row.printed
