"""Threads, tiles, the memory budget and progress. This package knows nothing about kernels."""
