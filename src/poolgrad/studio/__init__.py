"""The studio: a local page on which pooling ops are blocks that one wires, runs and understands."""
