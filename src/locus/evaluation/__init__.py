"""Benchmarks: one file each, and what they share: methods, places, tables, the report (docs/evaluation.md)."""
