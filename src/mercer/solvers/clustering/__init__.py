"""Rows grouped around means in feature space."""
