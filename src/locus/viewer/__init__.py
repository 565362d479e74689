"""The page: a scene, its map and its frames in a browser; a click lights up the same thing everywhere."""
