"""Other classifiers of series, with the interface of `TimeSliverClassifier`.

One file holds each network and its estimator; `base` is what they share, `layers` their pieces.
"""

from timesliver.backbones.base import BackboneClassifier, BackboneNetwork
from timesliver.backbones.cnn import CNN, CNNNetwork
from timesliver.backbones.color import COLOR, COLORNetwork
from timesliver.backbones.fcn import FCN, FCNNetwork
from timesliver.backbones.inception import InceptionTime, InceptionTimeNetwork
from timesliver.backbones.lstm import LSTM, LSTMNetwork
from timesliver.backbones.resnet import ResNet, ResNetNetwork
from timesliver.backbones.transformer import Transformer, TransformerNetwork

__all__ = [
    "CNN",
    "COLOR",
    "FCN",
    "LSTM",
    "BackboneClassifier",
    "BackboneNetwork",
    "CNNNetwork",
    "COLORNetwork",
    "FCNNetwork",
    "InceptionTime",
    "InceptionTimeNetwork",
    "LSTMNetwork",
    "ResNet",
    "ResNetNetwork",
    "Transformer",
    "TransformerNetwork",
]
