"""The pools of NumPy arrays: window arguments, operators, taps, derivatives."""
