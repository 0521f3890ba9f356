"""Benchmarks of speed and quality, each with a reference measured in the same run. How to read them: benchmarks/README.md."""
