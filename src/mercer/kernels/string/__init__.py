"""Kernels on strings: text, bytes, or sequences of tokens."""
