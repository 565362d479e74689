"""SIFT (Lowe 2004) of OpenCV, which needs no weights."""

import cv2
import numpy as np
import torch
import torch.nn.functional as F

from locus.keypoints.detection import Detector, Image, Keypoints


class Sift(Detector):
    """SIFT at the image's own size, with its descriptors brought to unit length."""

    name = "sift"
    dimension = 128

    def __init__(self, count: int) -> None:
        self.count = count
        # Without it, every keypoint of the doubled image is a quarter of a pixel off.
        self._sift = cv2.SIFT.create(nfeatures=count, enable_precise_upscale=True)
        self.fingerprint = f"sift {count} 1"

    def found(self, image: Image) -> Keypoints:
        size = (image.shape[1], image.shape[0])
        grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
        found, descriptors = self._sift.detectAndCompute(grey, None)
        if descriptors is None:
            return Keypoints(np.zeros((0, 2)), np.zeros(0), torch.zeros(0, self.dimension), size)
        pixels = np.array([each.pt for each in found], np.float64) + 0.5  # OpenCV: pixel centres at whole numbers
        scores = np.array([each.response for each in found], np.float64)
        best = np.argsort(-scores, kind="stable")[: self.count]  # OpenCV keeps all that tie with the last one
        return Keypoints(pixels[best], scores[best], F.normalize(torch.from_numpy(descriptors)[best], dim=-1), size)
