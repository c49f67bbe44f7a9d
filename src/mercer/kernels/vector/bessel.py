"""The Matern function ``2^(1-nu) / Gamma(nu) u^nu K_nu(u)``, without the overflows of its factors."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, kve

from mercer._types import Array

# From this order on the asymptotic series below is good to 1e-9.
_LARGE = 50.0
# ``exp(-u) u^nu`` is 0 from here on for orders below ``_LARGE``.
FAR = 2000.0


def matern_function(u: Array, nu: float) -> Array:
    """``2^(1-nu) / Gamma(nu) u^nu K_nu(u)`` for ``u >= 0`` in float64; 1 at 0, and decreasing.

    Parameters
    ----------
    u : array
        At least 0.
    nu : float
        Above 0 and finite.

    Examples
    --------
    >>> u = np.array([0.0, 1e-12, 1.0])
    >>> np.allclose(matern_function(u, 1.5), (1 + u) * np.exp(-u))
    True
    """
    u = np.asarray(u, dtype=np.float64)
    if nu >= _LARGE:
        return _by_expansion(u, nu)
    out = np.zeros_like(u)
    # Further away the function is 0, and SciPy's Bessel function is NaN from 2e9 on.
    low = u < FAR
    out[low] = _by_logarithms(u[low], nu)
    return out


def _by_logarithms(u: Array, nu: float) -> Array:
    """The factors are multiplied as logarithms, since ``u^nu`` and ``K_nu`` leave the range of floats."""
    bessel = kve(nu, u)
    # K_nu overflows where the product has reached 1 to all digits.
    inside = np.isfinite(bessel) & (u > 0)
    out = np.ones_like(u)
    logarithm = nu * np.log(u[inside]) + np.log(bessel[inside]) - u[inside]
    out[inside] = np.exp(logarithm + (1 - nu) * math.log(2) - gammaln(nu))
    # Next to 0 the rounding of the logarithms would pass 1.
    return np.minimum(out, 1.0, out=out)


def _by_expansion(u: Array, nu: float) -> Array:
    """The uniform expansion of ``K_nu`` for large orders, divided by its value at 0 (DLMF, section 10.41(ii))."""
    # Squared distances overflow before their roots do; the function is 0 long before.
    z = np.minimum(u, FAR * nu) / nu
    # z^2 / (1 + s), without a square that leaves the range of floats.
    s = np.hypot(1, z)
    excess = z * (z / (1 + s))
    logarithm = nu * (np.log1p(excess / 2) - excess) - 0.5 * np.log(s)
    return np.exp(logarithm) * _debye(1 / s, nu) / _debye(1.0, nu)


def _debye(p: Array | float, nu: float) -> Array | float:
    """``sum_k (-1)^k U_k(p) / nu^k`` up to ``k = 4`` (DLMF, equations 10.41.4 and 10.41.10)."""
    q = p * p
    u1 = p * (3 - 5 * q) / 24
    u2 = q * (81 - 462 * q + 385 * q**2) / 1152
    u3 = p * q * (30375 - 369603 * q + 765765 * q**2 - 425425 * q**3) / 414720
    u4 = q**2 * (4465125 - 94121676 * q + 349922430 * q**2 - 446185740 * q**3 + 185910725 * q**4) / 39813120
    return 1 - u1 / nu + u2 / nu**2 - u3 / nu**3 + u4 / nu**4
