"""Speed and quality as figures, each beside something measured in the same run. How to read them: benchmarks/README.md."""
