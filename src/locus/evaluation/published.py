"""Figures that others published, in tables of their own, each with its source: they are of other data and protocols."""

from collections.abc import Mapping, Sequence

from locus.evaluation.table import Column, Row, Table

PAPER = "LoCUS (ICCV 2023), on Matterport3D, which is other data: a reference, and no row of the tables above."


def _paper(number: int, columns: Sequence[Column], figures: Mapping[str, Sequence[float | None]]) -> Table:
    rows = [Row(name, values, "reference") for name, values in figures.items()]
    return Table(f"Published: the paper's Table {number}", columns, rows, [f"Source: Table {number} of {PAPER}"])


PLACE_RECOGNITION = _paper(
    1,
    [Column(f"{measure}, {part}", 2) for measure in ("V-Smooth-AP", "AP") for part in ("train", "val")],
    {
        "ResNet50": (0.11, 0.11, 0.11, 0.12),
        "DINO": (0.20, 0.20, 0.20, 0.20),
        "DINOv2": (0.17, 0.17, 0.17, 0.17),
        "LoCUS": (0.56, 0.54, 0.57, 0.55),
    },
)
SEGMENTATION = _paper(
    2,
    [
        Column(f"{measure}, {group}", 2)
        for group in ("stuff", "things", "all")
        for measure in ("mAP", "mIoU", "Jaccard")
    ],
    {
        "ResNet50": (0.39, 0.26, 0.55, 0.18, 0.11, 0.12, 0.19, 0.12, 0.41),
        "DINO": (0.49, 0.34, 0.63, 0.40, 0.28, 0.28, 0.40, 0.29, 0.52),
        "DINOv2": (0.55, 0.38, 0.67, 0.49, 0.35, 0.39, 0.49, 0.35, 0.58),
        "Mask2Former": (None, 0.03, 0.07, None, 0.00, 0.00, None, 0.00, 0.06),
        "Mask2Former + oracle": (None, 0.41, 0.71, None, 0.39, 0.53, None, 0.39, 0.64),
        "MaskDINO": (None, 0.05, 0.15, None, 0.00, 0.00, None, 0.00, 0.12),
        "MaskDINO + oracle": (None, 0.41, 0.71, None, 0.40, 0.54, None, 0.40, 0.65),
        "LoCUS": (0.53, 0.37, 0.67, 0.54, 0.40, 0.42, 0.54, 0.39, 0.59),
    },
)
RELATIVE_POSE = _paper(
    3,
    [
        *(Column(name, 2) for name in ("t median, m", "t mean, m", "t ≤ 1 m")),
        Column("R median, °", 1),
        Column("R mean, °", 1),
        Column("R ≤ 30°", 2),
    ],
    {
        "SparsePlanes": (0.63, 1.25, 0.67, 7.33, 22.78, 0.83),
        "8-Point-Supervision": (0.64, 1.01, 0.67, 8.01, 19.1, 0.85),
        "PlaneFormers": (0.66, 1.19, 0.67, 5.96, 22.2, 0.84),
        "SuperPoint + NN": (1.08, 1.84, 0.48, 34.4, 47.8, 0.47),
        "SuperPoint + FGINN": (1.02, 1.87, 0.49, 29.9, 45.2, 0.50),
        "LoCUS": (0.92, 1.69, 0.53, 22.1, 34.5, 0.58),
    },
)
SCANNET_1500 = Table(
    "Published: ScanNet-1500",
    [Column("AUC@5"), Column("AUC@10"), Column("AUC@20")],
    [Row("SuperPoint + SuperGlue", (0.1612, 0.3376, 0.5179), "reference")],
    ["Source: the README of SuperGlue's code (Sarlin et al. 2020), of all 1500 pairs."],
)
