"""The package can be taken into another project: it and one file of errors, with torch, are enough."""

import shutil
import subprocess
import sys
from pathlib import Path

import locus.errors
import locus.objective

SCRIPT = """
import sys, numpy, torch, jaxtyping
before = {name.partition('.')[0] for name in sys.modules}
import locus.objective
print(sorted({name.partition('.')[0] for name in sys.modules} - before - set(sys.stdlib_module_names)))
"""


def test_it_works_without_the_rest_of_the_project(tmp_path):
    package = tmp_path / "locus"
    shutil.copytree(Path(locus.objective.__file__).parent, package / "objective")
    shutil.copy(locus.errors.__file__, package)
    (package / "__init__.py").touch()
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "['locus']", done.stderr
