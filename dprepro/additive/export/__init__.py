"""Models in the forms of other software: interpret, ONNX, SQL, plain Python."""
