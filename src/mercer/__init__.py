"""Mercer: kernel methods for Python."""
