"""Certificates for coefficients that come from elsewhere: another library, a file, or a guess.

>>> from mercer import certify
>>> from mercer.certification import certify as same
>>> certify is same
True
"""

from mercer.certification.certify import certify

__all__ = ["certify"]
