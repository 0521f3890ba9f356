"""Models that run on torch. Only this package, and the ONNX exporter, import it."""
