"""Every shape written in a signature is checked while the tests run."""

from jaxtyping import install_import_hook

install_import_hook("locus", "beartype.beartype")
