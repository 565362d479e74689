"""One file of commands per job; `locus.cli` puts them together."""
