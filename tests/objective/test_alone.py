"""The package can be taken into another project: torch is all it needs."""

import subprocess
import sys

SCRIPT = """
import sys, numpy, torch, jaxtyping
before = {name.partition('.')[0] for name in sys.modules}
import locus.objective
ours = {name for name in sys.modules if name.startswith('locus') and not name.startswith('locus.objective')}
others = {name.partition('.')[0] for name in sys.modules} - before - set(sys.stdlib_module_names) - {'locus'}
print(sorted(ours), sorted(others))
"""


def test_importing_it_imports_nothing_else():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['locus', 'locus.errors'] []"
