"""Why a cell has its value: links between cells, explanations, sentences, plots."""
