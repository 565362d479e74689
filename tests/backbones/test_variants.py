import pytest
import torch

from locus.backbones.variants import VARIANTS, configuration
from locus.errors import WeightsError

# In millions, without heads. Written down from memory of the published sizes, not looked up: they catch a wrong width,
# depth or MLP, and do not prove a figure right.
PARAMETERS = {
    "dino-vits8": 21.7,
    "dino-vitb16": 85.8,
    "dinov2-small": 22.1,
    "dinov2-base": 86.6,
    "dinov2-large": 304.4,
    "dinov2-giant": 1136.5,
    "dinov3-vits16": 21.6,
    "dinov3-vits16plus": 28.7,
    "dinov3-vitb16": 85.7,
    "dinov3-vitl16": 303.1,
    "dinov3-vith16plus": 840.5,
    "dinov3-vit7b16": 6716,
    "dinov3-convnext-tiny": 27.8,
    "dinov3-convnext-small": 49.5,
    "dinov3-convnext-base": 87.6,
    "dinov3-convnext-large": 196.2,
    "resnet50": 23.5,
    "clip-vitb32": 87.8,
    "clip-vitl14": 303.2,
}


@pytest.mark.parametrize(("name", "millions"), PARAMETERS.items())
def test_parameters_are_about_as_many_as_remembered(name, millions):
    from transformers import AutoModel

    with torch.device("meta"):
        model = AutoModel.from_config(configuration(name))
    count = sum(value.numel() for key, value in model.named_parameters() if not key.startswith("pooler"))
    assert count / 1e6 == pytest.approx(millions, rel=5e-3)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_has_a_configuration_that_keeps_its_facts(name):
    config = configuration(name)
    assert config.model_type == VARIANTS[name].model_type
    for key, value in VARIANTS[name].config.items():
        assert getattr(config, key) == value


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(WeightsError, match="dinov2-small"):
        configuration("dinov9")
