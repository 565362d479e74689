"""The first ten minutes: houses generated, features trained, a place mapped, and one page that shows what came out."""
