"""Speed and memory of the package against the textbook formulation of the same network."""
