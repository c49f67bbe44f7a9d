"""What a row of X is: coercion, readers of files, bundled samples, encoding of columns."""
