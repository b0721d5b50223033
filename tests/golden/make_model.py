"""Write a model file of the current format: python tests/golden/make_model.py FORMAT.

Files of older formats are never written again: they show that old models still load.
"""

import sys
from pathlib import Path

import numpy as np

from timesliver import Segments, TimeSliverClassifier
from timesliver.symbols import SAX, Clock

HERE = Path(__file__).parent


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2, 24)).astype(np.float32).round(2)
    y = np.repeat(["slow", "fast"], 20)
    X[20:, 1] = np.abs(X[20:, 1])
    X[3, 0, 5:8] = np.nan
    X[4, :, 20:] = np.nan
    sax = Segments(
        sizes=(3, 0.25), latent_dim=5, symbols=SAX(4), positional_encoding=True, max_epochs=15
    )
    clock = Segments(
        sizes=(2,),
        latent_dim=3,
        symbols=[Clock(3), "sfa"],
        channels="separate",
        positional_encoding=False,
        window="bell",
        step=2,
        max_epochs=5,
    )
    model = TimeSliverClassifier(
        [sax, clock],
        class_weight={"slow": 1.0, "fast": 2.0},
        n_estimators=2,
        random_state=0,
        n_jobs=1,
    ).fit(X, y)
    name = f"model-format-{sys.argv[1]}"
    model.save(HERE / f"{name}.safetensors")
    scores = {
        f"{method}_positive": model.explain(X, method=method).positive_by_channel
        for method in ("timesliver", "additive")
    }
    np.savez_compressed(HERE / f"{name}.npz", X=X, logits=model.logits(X), **scores)


if __name__ == "__main__":
    main()
