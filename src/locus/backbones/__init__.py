"""Frozen networks: images in, patch tokens out; and where their weights come from."""
