"""The studio: a local web page to wire, run and understand pooling ops as blocks."""
