"""``mercer fit --certify``: how far a fit over landmarks is from the one to all rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._errors import MemoryBudgetError
from mercer.certification import LandmarkCertificate, certify_landmarks
from mercer.cli.options import EXACT
from mercer.data.blocks.block import join
from mercer.data.blocks.blocks import Blocks
from mercer.engine import memory

# The number that is proposed where all pairs are too many.
_SAMPLE = 500


def distance_from_exact(fitted: Any, training: Blocks, rows: int | str, scale: float, seed: int) -> dict[str, Any]:
    """The certificate of a fit for the problem of all rows, as plain values for the report.

    Parameters
    ----------
    fitted : estimator
        Fitted to the blocks over landmarks.
    training : Blocks
        The rows of the fit.
    rows : int or "exact"
        Of how many rows, drawn at random, the pairs with all others are evaluated; ``"exact"`` for all pairs, with the
        rows in memory.
    scale : float
        The unit of the target that the fit saw, in that of the table.
    seed : int

    Raises
    ------
    MemoryBudgetError
        If all rows do not fit into memory.
    """
    if rows == EXACT or int(rows) >= training.n:
        certificate, used = _of_all_pairs(fitted, training), training.n
    else:
        used = int(rows)
        certificate = certify_landmarks(fitted, training, n_rows=used, random_state=seed)
    return {
        **certificate.as_dict(),
        "rows": used,
        "all_rows": training.n,
        "prediction_error": scale * certificate.rows_error if np.isfinite(certificate.rows_error) else None,
        "text": certificate.explain(),
    }


def _of_all_pairs(fitted: Any, training: Blocks) -> LandmarkCertificate:
    what = f"{training.n:,} rows of {training.d:,} columns, for --certify {EXACT}"
    try:
        # The blocks and the rows in one array.
        with memory.reserve(2 * 8 * training.n * training.d, what):
            rows = join(list(training))
            return certify_landmarks(fitted, rows.X, rows.y, sample_weight=rows.sample_weight)
    except MemoryBudgetError as error:
        raise MemoryBudgetError(
            f"{error} Or pass --certify {_SAMPLE}, which evaluates the pairs of {_SAMPLE} rows with all others and "
            "leaves the rows in the files."
        ) from error
