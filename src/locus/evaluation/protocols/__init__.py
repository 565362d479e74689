"""Published protocols: each reads its own layout, and says which frames or pairs count and how they are counted."""
