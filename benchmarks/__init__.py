"""Speed and memory of the package against the textbook, the same network in dense tensors."""
