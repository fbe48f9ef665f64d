"""Commands of `poolgrad` that are more than a few lines: the demo and its picture."""
