"""Furniture and household things, by kind. Each maker takes a random generator and the household's style."""
