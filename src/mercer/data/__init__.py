"""Rows of X: coercion, readers of files, bundled samples, encoding of columns."""
