"""Kernels on graphs with labels and attributes."""
