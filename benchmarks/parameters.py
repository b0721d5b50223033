"""Parameter counts of the paper's seven networks: the paper's, ours, and where they differ.

python -m benchmarks.parameters
"""

from dataclasses import dataclass

from timesliver import Segments
from timesliver.encoders import Shape
from timesliver.network import InteractionPart, TimeSliverNetwork
from timesliver.network.segments import InputProjection, SegmentEncoder


@dataclass(frozen=True)
class Row:
    """One data set of the paper's architecture table.

    `pooling` is the average pooling that reproduces the printed count. `differences` adds up to
    the printed count minus ours; it was found from the published code and by arithmetic.
    `projection_dim` is the width of their input projection under a positional encoding.
    """

    name: str
    n_channels: int
    n_bins: int
    latent_dim: int
    segment_sizes: tuple[int, ...]
    n_classes: int
    printed: int
    pooling: tuple[int, int]
    differences: tuple[tuple[str, int], ...]
    projection_dim: int | None = None

    def network(self) -> TimeSliverNetwork:
        n_inputs = self.projection_dim or self.n_channels
        stem = InputProjection(self.n_channels, n_inputs, True) if self.projection_dim else None
        shape = Shape(self.n_channels, self.n_classes, ((self.n_channels, self.n_bins),))
        encoders = [SegmentEncoder(n_inputs, self.latent_dim, m) for m in self.segment_sizes]
        terms = [Segments.terms(shape, self.latent_dim, pooling=self.pooling) for _ in encoders]
        return TimeSliverNetwork([InteractionPart(encoders, terms, stem)], self.n_classes)

    def ours(self) -> int:
        return sum(p.numel() for p in self.network().parameters())


ROW_NORM = "a LayerNorm as wide as P has rows; the paper's equations have none"
PROJECTION = "an input projection; ours has one only under a positional encoding"

ROWS = (
    Row(
        name="FreqSum",
        n_channels=6,
        n_bins=15,
        latent_dim=36,
        segment_sizes=(7,),
        n_classes=2,
        printed=5_858,
        pooling=(8, 4),
        differences=(
            (PROJECTION + "; forward never uses theirs", 6 * 6 + 6),
            (ROW_NORM + "; forward never uses theirs", 2 * 90),
            ("their LayerNorm over q is counted but never used; ours is used", 0),
            ("we pool within channels: 6 x ceil(15 / 8) = 12 rows, theirs 90 // 8 = 11", -9 * 2),
        ),
    ),
    Row(
        name="SeqComb-UV",
        n_channels=1,
        n_bins=20,
        latent_dim=36,
        segment_sizes=(4, 7),
        n_classes=4,
        printed=14_518,
        pooling=(1, 1),
        differences=((ROW_NORM, 2 * 20),),
        projection_dim=1,
    ),
    Row(
        name="SeqComb-MV",
        n_channels=4,
        n_bins=10,
        latent_dim=36,
        segment_sizes=(4, 7),
        n_classes=4,
        printed=20_576,
        pooling=(1, 1),
        differences=((ROW_NORM, 2 * 40),),
        projection_dim=4,
    ),
    Row(
        name="LowVar",
        n_channels=2,
        n_bins=20,
        latent_dim=36,
        segment_sizes=(4,),
        n_classes=4,
        printed=5_078,
        pooling=(2, 2),
        differences=((PROJECTION, 2 * 2 + 2), (ROW_NORM, 2 * 40)),
    ),
    Row(
        name="Audio",
        n_channels=40,
        n_bins=10,
        latent_dim=12,
        segment_sizes=(1,),
        n_classes=10,
        printed=20_110,
        pooling=(3, 1),
        differences=(
            (PROJECTION, 40 * 40 + 40),
            ("LayerNorm over the projected input", 2 * 40),
            ("LayerNorm over the rows of P, which makes the head non-linear in P", 2 * 400),
            (
                "we pool within channels: 40 x ceil(10 / 3) = 160 rows, theirs 400 // 3 = 133",
                -27 * 12 * 10,
            ),
        ),
    ),
    Row(
        name="EEG",
        n_channels=1,
        n_bins=25,
        latent_dim=12,
        segment_sizes=(10,),
        n_classes=5,
        printed=6_441,
        pooling=(2, 1),
        differences=(
            ("a further 64, as a LayerNorm over the 32 projected inputs has", 2 * 32),
            (
                "kernels 2, 5, 5 there; 4, 4, 4 here",
                (32 * 16 * 2 + 16 * 32 * 5 + 32 * 12 * 5) - (32 * 16 + 16 * 32 + 32 * 12) * 4,
            ),
            ("we pool ceil(25 / 2) = 13 rows, theirs drops the last symbol: 12", -12 * 5),
        ),
        projection_dim=32,
    ),
    Row(
        name="FordA",
        n_channels=1,
        n_bins=70,
        latent_dim=36,
        segment_sizes=(10,),
        n_classes=2,
        printed=8_280,
        pooling=(2, 2),
        differences=((PROJECTION, 1 + 1), (ROW_NORM, 2 * 70)),
    ),
)


def table() -> str:
    lines = ["| data set | paper | ours | paper minus ours |", "|---|---|---|---|"]
    for row in ROWS:
        why = "; ".join(f"{count:+,}: {reason}" for reason, count in row.differences)
        lines.append(f"| {row.name} | {row.printed:,} | {row.ours():,} | {why} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
