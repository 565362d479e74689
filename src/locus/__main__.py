"""`python -m locus` is the `locus` command."""

from locus.cli import main

raise SystemExit(main())
