"""The linear probe: patches told right, in houses it was not fitted to and in views it was not fitted to.

    python benchmarks/probe.py --model RUN --scenes SCENE... --probe SCENE... --fit TRAINING_SCENE... [--cache DIR]

Classes: fitted to the scenes given with --probe, scored on all frames of the scenes given with --scenes, by names.
Objects: for each of the latter, stuff by class and things one by one, fitted to three frames of four and scored on the
fourth. Accuracy over patches, and the mean over classes of intersection over union, those of the truth that the probe
has. PCA of the untrained backbone is fitted on the scenes given with --fit.
"""

import argparse

import numpy as np
import torch
from compared import add_methods, methods

from locus import load_scene
from locus.features.dense import scene_features
from locus.tasks.patch_labels import LabelledPatches, labelled_patches, merged, object_targets, same_names
from locus.tasks.probe import Probe, fit_probe


def scores(probe: Probe, patches: LabelledPatches) -> tuple[float, float]:
    """Accuracy, and mean intersection over union."""
    truth = same_names(patches.classes, probe.classes)[patches.labels.numpy()]
    told = probe.logits(patches.features).argmax(dim=1).numpy() + 1
    present = [number for number in np.unique(truth) if number]
    ious = [((told == k) & (truth == k)).sum() / ((told == k) | (truth == k)).sum() for k in present]
    return probe.accuracy(patches), float(np.mean(ious))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_methods(parser)
    parser.add_argument("--probe", nargs="+", required=True)
    parser.add_argument("--class-l2", nargs="*", type=float, default=[None])
    parser.add_argument("--object-l2", nargs="*", type=float, default=[None])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("method | l2 | accuracy | mIoU")
    for name, network in methods(arguments).items():
        fitted, tested = (
            [scene_features(network, load_scene(path), arguments.cache) for path in paths]
            for paths in (arguments.probe, arguments.scenes)
        )
        for l2 in arguments.class_l2:
            probe = fit_probe(merged([labelled_patches(seen) for seen in fitted]), l2=l2)
            values = scores(probe, merged([labelled_patches(seen) for seen in tested]))
            print(f"{name}, classes", l2, *(f"{value:.3f}" for value in values), sep=" | ", flush=True)
        for l2 in arguments.object_l2:
            rows = []
            for seen in tested:
                patches = labelled_patches(seen, object_targets(seen.scene))
                kept = [row for row in range(len(seen)) if row % 4]
                probe = fit_probe(patches.where(kept), l2=l2, objects=True)
                rows.append(scores(probe, patches.where(range(0, len(seen), 4))))
            print(f"{name}, objects", l2, *(f"{v:.3f}" for v in np.mean(rows, axis=0)), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
