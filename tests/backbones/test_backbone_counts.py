"""Parameter counts of the paper's networks, from sizes alone."""

import pytest

from timesliver.backbones import (
    CNN,
    COLOR,
    CNNNetwork,
    COLORNetwork,
    Transformer,
    TransformerNetwork,
)


def count(network):
    return sum(weight.numel() for weight in network.parameters())


@pytest.mark.parametrize(
    ("n_channels", "n_classes", "sizes", "expected"),
    [
        (6, 2, {}, 42_378),
        (1, 4, {}, 42_076),
        (4, 4, {}, 42_268),
        (2, 4, {}, 42_140),
        (1, 2, {}, 42_058),
        (1, 5, {"widths": (32, 32, 64, 128, 128, 64)}, 74_981),
        (40, 10, {"widths": (32, 32, 64, 128, 512, 64), "head": (32,)}, 224_938),
    ],
)
def test_cnn(n_channels, n_classes, sizes, expected):
    assert count(CNNNetwork(CNN(**sizes), n_channels, n_classes)) == expected


AUDIO = {"stem_widths": (64, 64, 128), "stem_kernels": (2, 2, 2), "head": (64, 32, 8)}
EEG = {
    "stem_widths": (16, 32, 64, 128),
    "stem_kernels": (2, 2, 2, 2),
    "stem_strides": (2, 2, 2, 2),
    "ff_width": 512,
    "final_norm": True,
}
FREQSUM = {
    "stem_widths": (32, 32, 32),
    "stem_kernels": (2, 2, 2),
    "n_heads": 2,
    "ff_width": 512,
    "head": (64, 32, 8),
}


@pytest.mark.parametrize(
    ("n_channels", "n_classes", "sizes", "expected"),
    [
        (1, 4, {}, 361_156),
        (4, 4, {}, 361_540),
        (2, 4, {}, 361_284),
        (1, 2, {}, 361_090),
        (40, 10, AUDIO, 370_498),
        (1, 5, EEG, 230_805),
        (6, 2, FREQSUM, 46_714),
    ],
)
def test_transformer(n_channels, n_classes, sizes, expected):
    assert count(TransformerNetwork(Transformer(**sizes), n_channels, n_classes)) == expected


@pytest.mark.parametrize(
    ("n_channels", "n_classes", "n_symbols", "latent_dim", "expected"),
    [
        (6, 2, 4, 4, 5_494),
        (1, 4, 20, 20, 16_184),
        (4, 4, 10, 12, 18_848),
        (2, 4, 20, 12, 18_848),
        (40, 10, 3, 2, 13_112),
        (1, 5, 25, 36, 33_425),
        (1, 2, 70, 8, 22_082),
    ],
)
def test_color(n_channels, n_classes, n_symbols, latent_dim, expected):
    assert (
        count(COLORNetwork(COLOR(n_bins=n_symbols, latent_dim=latent_dim), n_channels, n_classes))
        == expected
    )
