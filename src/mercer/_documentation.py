"""Where the documentation of a class is: the links that estimators show in a notebook."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from mercer._errors import MercerWarning, warn_user

VARIABLE = "MERCER_DOCS"
"""The environment variable with the address of the site."""

_HERE = Path(__file__).resolve()
# Where ``python3 bootstrap.py site`` builds the site, beside the sources in a checkout.
_BUILT = _HERE.parents[2] / "build" / "site" / "html"
# Left as they are in an address; all else is encoded, because scikit-learn writes addresses into its page unchanged.
_PLAIN = "/:@[]%!$*+,;=~"


_Class = TypeVar("_Class", bound=type)


def documented(cls: _Class) -> _Class:
    """Let the ``?`` of estimators of this class in a notebook lead to their page; subclasses inherit it.

    User-defined subclasses have no page, and no link.
    """
    # The names are scikit-learn's, documented for authors of estimators.
    base: Any = cls
    base._doc_link_module = "mercer"
    base._doc_link_template = "{address}"
    base._doc_link_url_param_generator = lambda estimator: {"address": page_of(type(estimator))}
    return cls


def page_of(cls: type) -> str:
    """Return the address of the page about a class, or "" if there is none.

    The site is the one whose address the environment variable ``MERCER_DOCS`` has, or else the one that was built in
    the checkout from which the package runs. An address that cannot be used is warned about.

    Parameters
    ----------
    cls : type

    Returns
    -------
    str
        It can stand in an attribute of HTML.

    Examples
    --------
    >>> class Own:
    ...     pass
    >>> page_of(Own)
    ''
    """
    name = _public_name(cls)
    if not name:
        return ""
    page, site = f"api/names/{name}.html", os.environ.get(VARIABLE, "").strip()
    if not site:
        built = _BUILT / page
        return built.as_uri() if built.is_file() else ""
    fault = _fault(site)
    if fault:
        warn_user(
            f"{VARIABLE}={site!r} {fault}, so estimators show no link to their documentation. Set it to the address of "
            "the site, such as https://example.org/mercer or file:///home/me/mercer/build/site/html.",
            MercerWarning,
        )
        return ""
    return f"{quote(site.removesuffix('/index.html').rstrip('/'), safe=_PLAIN)}/{page}"


def _public_name(cls: type) -> str:
    """The name under which the site has a class: that of the package if it has one, else that of a public module."""
    package, _, rest = cls.__module__.partition(".")
    if package != __name__.partition(".")[0]:
        return ""
    root: Any = sys.modules[package]
    room = rest.partition(".")[0]
    for module in (root, getattr(root, room)) if room in root.__all__ else (root,):
        if cls.__name__ in module.__all__ and getattr(module, cls.__name__) is cls:
            return f"{module.__name__}.{cls.__name__}"
    return ""


def _fault(site: str) -> str:
    """What is wrong with the address of a site; "" if nothing is."""
    try:
        parts = urlsplit(site)
    except ValueError as error:
        return f"is not an address ({error})"
    if parts.scheme not in ("http", "https", "file"):
        return "does not begin with http://, https:// or file://"
    if parts.scheme == "file":
        return "" if site.startswith("file://") and parts.path.startswith("/") else "has no absolute path"
    if not parts.hostname:
        return "has no host"
    return "has a query or a fragment" if parts.query or parts.fragment else ""
