"""Models of NVIDIA/DeepLearningExamples: what its tables of throughput don't say about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from simulator.units import THOUSAND


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleModel:
    """Facts about a model that are not in its rows.

    `parameters` are trained ones, `units` how many of the README's units make a sample. `varying`:
    samples differ in length, so ranks finish at different times. `batches`: batch size of a GPU by
    precision where the row has none, as in the README's commands.
    """

    parameters: float
    units: float = 1.0
    varying: bool = False
    batches: tuple[tuple[str, int], ...] = ()


EXAMPLE_MODELS: Final[dict[str, ExampleModel]] = {
    # parameters: torchvision 0.21.0, weights metadata
    "RN50v1.5": ExampleModel(parameters=25557032),
    "ConvNets/resnet50v1.5": ExampleModel(parameters=25557032),
    "ConvNets/efficientnet": ExampleModel(
        parameters=5288548, batches=(("AMP", 256), ("FP32", 128))
    ),
    "ConvNets/efficientnet_v1": ExampleModel(
        parameters=5288548, batches=(("AMP", 512), ("FP32", 256), ("TF32", 512))
    ),
    "ConvNets/efficientnet_v2": ExampleModel(
        parameters=21458488, batches=(("AMP", 128), ("FP32", 64))
    ),
    "MaskRCNN": ExampleModel(parameters=44401393, varying=True),
    # parameters: README files of NVIDIA/DeepLearningExamples
    "BERT": ExampleModel(parameters=330e6),
    "BERT/biobert": ExampleModel(parameters=110e6),
    "ELECTRA": ExampleModel(parameters=110e6),
    # parameters: papers of the models; batches and lengths: guesses
    "ConvNets/resnext101-32x4d": ExampleModel(parameters=44.2e6),
    "ConvNets/se-resnext101-32x4d": ExampleModel(
        parameters=49e6, batches=(("AMP", 96), ("FP32", 64))
    ),
    "Efficientdet": ExampleModel(
        parameters=3.9e6, batches=(("AMP", 60), ("FP32", 30), ("TF32", 100))
    ),
    "GNMT": ExampleModel(parameters=160e6, units=51.0, varying=True),
    "Transformer": ExampleModel(
        parameters=213e6, varying=True, batches=(("AMP", 5120), ("FP32", 2560))
    ),
    "Transformer-XL": ExampleModel(parameters=192e6, units=192.0),
    "Jasper": ExampleModel(parameters=333e6, varying=True),
    "QuartzNet": ExampleModel(parameters=18.9e6, varying=True),
    "FastPitch": ExampleModel(parameters=45e6, units=560.0, varying=True),
    "HiFiGAN": ExampleModel(parameters=84e6, units=32.0),
    "wav2vec2": ExampleModel(parameters=95e6, units=750.0, varying=True),
    "SSD": ExampleModel(parameters=23e6),
    "nnUNet": ExampleModel(parameters=31e6),
    "UNet_Medical": ExampleModel(parameters=31e6),
    "UNet_3D_Medical": ExampleModel(parameters=19e6),
    "VNet": ExampleModel(parameters=45e6),
    "MoFlow": ExampleModel(parameters=7e6),
    "NCF": ExampleModel(parameters=31.8e6),
    "TFT": ExampleModel(parameters=THOUSAND**2),
    "SIM": ExampleModel(parameters=10e6, batches=(("AMP", 131072), ("TF32", 131072))),
}
