"""Kernels on ordered trees with labels."""
