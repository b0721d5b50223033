"""Generated sets whose truth is known: one file per set."""

from timesliver.datasets.synthetic.farfield import make_farfield
from timesliver.datasets.synthetic.freqsum import make_freqsum
from timesliver.datasets.synthetic.lowvar import make_lowvar
from timesliver.datasets.synthetic.seqcomb import make_seqcomb_mv, make_seqcomb_uv

__all__ = ["make_farfield", "make_freqsum", "make_lowvar", "make_seqcomb_mv", "make_seqcomb_uv"]
