"""Kernels on images, and on sets of descriptors of images."""
