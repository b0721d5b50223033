import numpy as np
import pytest
import torch
from torch import nn

from batches import batch_of
from timesliver.backbones import (
    CNN,
    COLOR,
    FCN,
    LSTM,
    CNNNetwork,
    COLORNetwork,
    FCNNetwork,
    InceptionTime,
    InceptionTimeNetwork,
    LSTMNetwork,
    ResNet,
    ResNetNetwork,
    Transformer,
    TransformerNetwork,
)
from timesliver.errors import InvalidInputError


def batch(n_cases=3, n_channels=2, n_timepoints=20, lengths=None):
    values = torch.randn(
        n_cases, n_channels, n_timepoints, generator=torch.Generator().manual_seed(0)
    )
    lengths = torch.tensor(lengths or [n_timepoints] * n_cases)
    return batch_of(values * (torch.arange(n_timepoints) < lengths[:, None, None]), lengths)


def test_attention_equals_torchs_own_layer():
    network = TransformerNetwork(
        Transformer(
            stem_widths=(16, 32), stem_kernels=(2, 2), stem_strides=(1, 1), ff_width=64, head=()
        ),
        2,
        3,
    ).eval()
    ours = network.layers[0]
    theirs = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    with torch.no_grad():
        theirs.self_attn.in_proj_weight.copy_(ours.attention.project.weight)
        theirs.self_attn.in_proj_bias.copy_(ours.attention.project.bias)
        for mine, other in (
            (ours.attention.out, theirs.self_attn.out_proj),
            (ours.feed_forward[0], theirs.linear1),
            (ours.feed_forward[3], theirs.linear2),
            (ours.norm1, theirs.norm1),
            (ours.norm2, theirs.norm2),
        ):
            other.load_state_dict(mine.state_dict())
    theirs.eval()
    x = torch.randn(3, 7, 32, generator=torch.Generator().manual_seed(1))
    within = torch.ones(3, 1, 7)
    within[1, :, 4:] = 0
    y, weights = ours(x, within)
    expected = theirs(x, src_key_padding_mask=within[:, 0] == 0)
    torch.testing.assert_close(y[0], expected[0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(y[1, :4], expected[1, :4], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(weights.sum(3), torch.ones(3, 4, 7))


def test_attention_and_its_gradient_can_be_read():
    network = TransformerNetwork(Transformer(n_layers=2), 2, 3).eval()
    cases = batch(lengths=[20, 12, 3])
    logits, attention = network(cases, return_attention=True)
    torch.testing.assert_close(logits, network(cases))
    assert [weights.shape for weights in attention] == [(3, 4, 15, 15)] * 2
    assert network.n_tokens(cases.lengths).tolist() == [15, 7, 1]
    assert not attention[0][1, :, :, 7:].any()
    assert not attention[1][2, :, :, 1:].any()
    gradients = torch.autograd.grad(logits[:, 0].sum(), attention)
    assert all(gradient.abs().max() > 0 for gradient in gradients)


def test_a_token_sees_its_span_and_nothing_else():
    network = TransformerNetwork(
        Transformer(stem_widths=(4, 4, 4), stem_kernels=(4, 2, 2), stem_strides=(2, 2, 1)), 1, 2
    )
    assert (network.span, network.stride) == (10, 4)
    x = torch.zeros(1, 1, 40, requires_grad=True)
    tokens = network.stem(x + 0.1)
    assert tokens.shape[2] == network.n_tokens(torch.tensor(40))
    with torch.no_grad():
        for layer in network.stem[::2]:
            layer.weight.abs_()
            layer.bias.zero_()
    (gradient,) = torch.autograd.grad(network.stem(x + 0.1)[0, :, 3].sum(), x)
    assert gradient[0, 0].nonzero().flatten().tolist() == list(range(12, 22))


@pytest.mark.parametrize(
    ("n_timepoints", "pooled", "strides"),
    [(200, 2, (1, 1, 1)), (750, 2, (2, 1, 1)), (3000, 4, (4, 2, 1))],
)
def test_long_series_are_shortened(n_timepoints, pooled, strides):
    X = np.random.default_rng(0).normal(size=(4, 1, n_timepoints))
    cnn = CNN(max_epochs=1, widths=(2, 2, 2, 2, 2)).fit(X, [0, 1, 0, 1])
    assert len(cnn.network_.pools) == pooled
    transformer = Transformer(max_epochs=1, stem_widths=(4, 4, 4), ff_width=4)
    stem = transformer.fit(X, [0, 1, 0, 1]).network_.stem
    assert tuple(layer.stride[0] for layer in stem[::2]) == strides


def test_relus_and_pools_are_modules_of_their_own():
    network = CNNNetwork(CNN(), 1, 2)
    calls = []
    for module in network.modules():
        if isinstance(module, nn.ReLU | nn.MaxPool1d):
            module.register_forward_hook(lambda module, *_: calls.append(module))
    network(batch(n_channels=1))
    assert len(calls) == len({id(module) for module in calls}) == 5 + 2 + 3


def test_color_against_plain_loops():
    network = COLORNetwork(COLOR(n_bins=3, latent_dim=4, positional_encoding=False), 2, 3).eval()
    codes = torch.tensor([[[1, 2, 3, 3, 0, 1, 0], [2, 2, 1, 3, 1, 0, 0]]])
    cases = batch_of(codes.float(), torch.tensor([6]))
    D, Q = network.encode(cases)
    expected = torch.zeros(4, 6)
    for k in range(3):  # the case has 6 points, so three segments of 4
        for offset, weight in enumerate((1, 3, 3, 1)):  # three averages of two points in a row
            for channel in range(2):
                code = int(codes[0, channel, k + offset])
                if code:
                    expected[k, 3 * channel + code - 1] += weight / 6
    torch.testing.assert_close(D[0], expected)
    torch.testing.assert_close(network(cases), network.classify(expected.T @ Q))


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (CNNNetwork, CNN()),
        (FCNNetwork, FCN()),
        (ResNetNetwork, ResNet()),
        (InceptionTimeNetwork, InceptionTime()),
        (LSTMNetwork, LSTM()),
    ],
)
def test_training_does_not_see_the_padding(kind, settings):
    cases = batch(lengths=[20, 12, 3])
    longer = batch_of(nn.functional.pad(cases.values, (0, 13)), cases.lengths)
    first, second = kind(settings, 2, 3).train(), kind(settings, 2, 3).train()
    torch.testing.assert_close(first(cases), second(longer), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(first.eval()(cases), second.eval()(cases), rtol=1e-4, atol=1e-5)


def test_wrong_channels():
    with pytest.raises(InvalidInputError, match=r"made for series of shape \(n_cases, 3"):
        CNNNetwork(CNN(), 3, 2)(batch())
