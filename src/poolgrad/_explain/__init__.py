"""Explain cell values: links between cells, explanations, sentences, plots."""
