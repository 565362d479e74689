"""XFeat (Potje et al. 2024): small, quick, 64 dimensions."""

from typing import Any

from torch import Tensor

from locus.keypoints.networks import KorniaDetector, Weights, filled


class XFeat(KorniaDetector):
    """kornia's XFeat with the authors' weights. It takes sides in whole blocks; else kornia would resize them again."""

    name = "xfeat"
    dimension = 64

    def built(self, kornia: Any, weights: Weights) -> Any:
        network = kornia.XFeat(top_k=self.count).eval()
        filled(network.net, weights)
        return network

    def seen(self, pixels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        output = self.network.detectAndCompute(pixels)[0]
        return output["keypoints"], output["scores"], output["descriptors"]
