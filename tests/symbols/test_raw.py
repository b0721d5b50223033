import numpy as np

from timesliver.symbols import Raw


def test_observed_points_are_marked_with_one_and_others_with_zero():
    X = np.array([[3.0, np.nan, -2.0], [0.0, 1.0, np.nan]])
    assert Raw(n_bins=4).fit_transform(X).tolist() == [[[1, 0, 1]], [[1, 1, 0]]]


def test_the_number_of_symbols_is_that_of_the_learnt_columns():
    assert Raw(n_bins=300).n_symbols == 300
