"""Fit the groupings that come with LoCUS: `python -m locus.evaluation.objects_fit SCENE...`, labelled scenes.

Writes objects.json beside `locus.tasks.objects`: curves for the shipped model, and for geometry and colour alone.
"""

import sys

from locus.evaluation.methods import ModelMethod
from locus.evaluation.object_groups import GeometryAlone, ObjectGroups
from locus.files import save_json
from locus.model import LoCUS
from locus.model.shipped import DEFAULT
from locus.tasks.objects import FITTED


def main(scenes: tuple[str, ...]) -> None:
    methods = [GeometryAlone(), ModelMethod(DEFAULT, LoCUS.from_pretrained(DEFAULT))]
    save_json(FITTED, {method.fingerprint: ObjectGroups(scenes).grouping(method).described() for method in methods})


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
