"""TensorFlow's operators as data: the table, their semantics, arguments, problem lines."""
