"""Landmarks: a few rows that stand for all others in approximations of a kernel matrix."""
