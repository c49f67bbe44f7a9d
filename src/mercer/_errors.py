"""Exceptions and warnings. Every message says what was wrong, what was seen, and what to do next."""

from __future__ import annotations


class MercerError(Exception):
    """Base of every error that Mercer raises on purpose."""


class DataError(MercerError, ValueError):
    """The data cannot be used as they are: NaN, wrong shape, unreadable file, one class only, ..."""


class SchemaError(DataError):
    """New data do not have the columns that the model was fitted on."""


class ParameterError(MercerError, ValueError):
    """A parameter has a value that makes no sense."""


class KernelSyntaxError(ParameterError):
    """A kernel expression cannot be read."""


class IndefiniteKernelError(ParameterError):
    """A learner that needs a positive semi-definite kernel was given one that is not."""


class MemoryBudgetError(MercerError, MemoryError):
    """The job would not fit the memory budget; raised before anything is allocated."""


class NumericalError(MercerError, ArithmeticError):
    """A computation broke down: a factorisation failed, numbers overflowed."""


class KernelValueError(DataError, NumericalError):
    """A kernel returned NaN, an infinity, or an array of the wrong shape."""


class ModelFileError(MercerError, ValueError):
    """A model file is truncated, altered, of a newer version, or no model file at all; or a model cannot be written."""


class MissingDependencyError(MercerError, ImportError):
    """An optional package is needed for what was asked."""


class MercerWarning(UserWarning):
    """Base of the warnings that Mercer gives."""
