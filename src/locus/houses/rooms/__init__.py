"""How people furnish: one file per use of a room."""
