"""Certificates for coefficients that come from elsewhere: another library, a file, or a guess.

>>> from mercer import certify
>>> from mercer.certification import certify as same
>>> certify is same
True
"""

from mercer.certification.certify import certify
from mercer.certification.landmark_certificate import LandmarkCertificate
from mercer.certification.over_landmarks import certify_landmarks

__all__ = ["LandmarkCertificate", "certify", "certify_landmarks"]
