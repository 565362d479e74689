"""The first ten minutes: houses generated, features trained, a house mapped, and one page that shows what came out."""
