"""Models that were exported to ONNX: exporting them, checking an export, running it."""
