"""What users have registered: classes of their own that files may hold, and models that commands may name.

Filled in by :func:`mercer.extend.register`; here so that every room can look it up.
"""

from __future__ import annotations

CLASSES: dict[str, type] = {}
"""By the name that a model file gives them: top-level package and class."""

MODELS: dict[str, tuple[type, tuple[str, ...]]] = {}
"""Estimators by the name that ``--model`` gives them, with their tasks."""
