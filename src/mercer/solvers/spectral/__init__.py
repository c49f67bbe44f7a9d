"""Eigenpairs of kernel matrices."""
