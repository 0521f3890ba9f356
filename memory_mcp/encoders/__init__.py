"""The embedding model and the cross-encoder: what they are to the rest (`models`), how they are found and loaded (`loading`), run (`torch`, `onnx`) and shared (`pool`)."""
