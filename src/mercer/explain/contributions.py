"""What each part of a row contributes to the decision value of a fitted model."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mercer._errors import ParameterError
from mercer.data.objects import short
from mercer.engine import threads

# Imported for the kernels that it teaches split().
from mercer.explain import counted as counted
from mercer.explain.left_out import leave_out
from mercer.explain.models import Explained, explained
from mercer.explain.result import Contributions, Method, Part
from mercer.explain.split import Sides, Split, split
from mercer.kernels.inputs import Rows


def contributions(model: Any, row: Any, *, output: Any = None, by: Literal["parts", "rows"] = "parts") -> Contributions:
    r"""Return what each part of a row contributes to the decision value of a fitted model.

    The decision value is :math:`f(x) = \sum_i a_i k(x_i, x) + b`: what ``decision_function`` returns, the prediction of
    a regression, the mean of the latent value of a Gaussian process classifier, or the latent value of an ordinal one.
    If the kernel counts features, :math:`k(z, x) = \sum_u w_u c_u(z) c_u(x)`, then

    .. math:: f(x) = b + \sum_u c_u(x) \Bigl(w_u \sum_i a_i c_u(x_i)\Bigr)

    and every occurrence of u in x contributes the factor in brackets. These values and the intercept sum to the
    decision value, and ``method`` is ``"exact"``:

    +-------------------------------------------------------+-------------------------------------------------------+
    | kernel                                                | parts                                                 |
    +=======================================================+=======================================================+
    | ``Spectrum``, ``BlendedSpectrum``, ``BagOfWords``     | substrings, or words, at each position                |
    +-------------------------------------------------------+-------------------------------------------------------+
    | ``Mismatch``, ``GappyKmers``, ``WeightedDegree``      | windows, or substrings, at each position              |
    +-------------------------------------------------------+-------------------------------------------------------+
    | ``Subtree``                                           | complete subtrees                                     |
    +-------------------------------------------------------+-------------------------------------------------------+
    | ``SubsetTree``, ``PartialTree``                       | nodes, each with the fragments that begin there       |
    +-------------------------------------------------------+-------------------------------------------------------+
    | ``VertexHistogram``, ``WeisfeilerLehman``,            | nodes with what is so many steps around them; edges;  |
    | ``Propagation``, ``EdgeHistogram``, ``ShortestPath``  | the ends of paths                                     |
    +-------------------------------------------------------+-------------------------------------------------------+
    | ``Graphlet``                                          | kinds of small graphs                                 |
    +-------------------------------------------------------+-------------------------------------------------------+
    | ``Linear``, ``Hamming``, ``HistogramIntersection``,   | columns                                               |
    | ``AdditiveChiSquared``, ``NegativeDistance(2)``       |                                                       |
    +-------------------------------------------------------+-------------------------------------------------------+
    | ``Polynomial``, ``AllSubsets``, their products        | monomials, up to 10,000 of them                       |
    +-------------------------------------------------------+-------------------------------------------------------+
    | ``SetOf``, ``PyramidMatch``, ``ConvolutionalPatches`` | members; patches                                      |
    +-------------------------------------------------------+-------------------------------------------------------+
    | ``SpatialPyramid``                                    | cells of the image                                    |
    +-------------------------------------------------------+-------------------------------------------------------+
    | ``k1 + k2``                                           | the parts of each term; a term without parts is one   |
    +-------------------------------------------------------+-------------------------------------------------------+
    | ``c * k``, ``on``, ``warped``, ``scaled_by``,         | those of ``k``. Normalised, the values are divided by |
    | ``normalized``, ``centered``                          | the norm of the row; centred, there is a constant     |
    |                                                       | beside them                                           |
    +-------------------------------------------------------+-------------------------------------------------------+

    For all other kernels a part is left out: its value is :math:`f(x)` less the value of the row without it, and
    ``method`` is ``"left out"``. Such values need not sum to anything. Without a symbol, node with its edges, subtree
    or member, the row is a shorter one. A time of a series is interpolated linearly between its neighbours, and a block
    of an image gets the mean colour of the image. A column is replaced by the entries of up to 100 stored rows of the
    model, and the values are averaged; in a sparse row it is set to 0. ``TabularRegressor`` and ``TabularClassifier``
    are explained in this way, with all that a column was encoded as exchanged together. Where the function is a sum of
    functions of single columns, the values are exact: each is that of its column less the mean over these rows.

    Parameters
    ----------
    model : estimator
        Fitted: a classifier, regression or novelty detector with one kernel, a pipeline or a search that ends in one,
        or the model of a file that ``mercer fit`` wrote.
    row : object
        One row of what the model predicts for: a string, a tree, a graph, a series, a sequence of numbers, or a table
        of one row.
    output : object, optional
        A class label; a pair of them for machines that decide between pairs (``SVC``); or the number of a target. By
        default the second of two classes, the class that the model predicts, this class against its closest rival, or
        the only target.
    by : {"parts", "rows"}, default="parts"
        Parts of the row, or rows of the fit: what :math:`a_i k(x_i, x)` is for each, exact for every kernel.

    Returns
    -------
    Contributions

    Raises
    ------
    ParameterError
        If the model has no decision value of this form, lacks the requested output, or has a kernel whose rows have no
        parts.
    DataError
        If the row is not one row of the kind that the model was fitted to.
    MemoryBudgetError
        If copies of a long row, each without a part, do not fit the memory budget.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Notes
    -----
    Features that no row of the model has contribute 0 and are not listed. All values are computed in float64.
    Sonnenburg, Zien, Philips and Raetsch (2008), "POIMs: positional oligomer importance matrices", and Poulin et al.
    (2006), "Visual explanation of evidence in additive classifiers".

    Examples
    --------
    >>> from mercer import SVC
    >>> from mercer.explain import contributions
    >>> from mercer.kernels import BagOfWords
    >>> texts = ["win a free prize now", "free entry, win cash", "see you at lunch", "home at seven"]
    >>> model = SVC(kernel=BagOfWords()).fit(texts, ["spam", "spam", "mail", "mail"])
    >>> explanation = contributions(model, "a free lunch at home")
    >>> explanation.method, explanation.output, sorted(str(explanation.parts[i]) for i in explanation.top(2))
    ('exact', 'spam against mail', ['at at 13-14', 'free at 2-5'])
    >>> abs(explanation.sum - explanation.decision) < 1e-12
    True
    """
    if by not in ("parts", "rows"):
        raise ParameterError(f"by must be 'parts' or 'rows', but is {short(by)}.")
    with threads.workers(getattr(model, "n_jobs", None)):
        problem = explained(model, row, output)
        method, result = _split(problem, by)
        decision = float(problem.values(problem.row)[0])
    result = _without_zeros(result)
    parts = (*result.parts, *(part for part, _ in problem.trend))
    added = np.array([value for _, value in problem.trend])
    return Contributions(
        parts,
        np.concatenate([result.values, added]),
        problem.intercept,
        decision + float(added.sum()),
        method,
        problem.output,
        result.item,
    )


def _split(problem: Explained, by: str) -> tuple[Method, Split]:
    if by == "rows":
        return "exact", _by_rows(problem)
    kernel = problem.functions.kernel
    if kernel is None:
        raise ParameterError(
            'a row of kernel="precomputed" is kernel values, without parts; use by="rows", or fit a kernel object.'
        )
    if problem.places is not None:
        return "left out", leave_out(problem)
    if not problem.functions.rows.shape[0]:
        return "exact", Split([], np.zeros(0))
    sides = Sides(Rows(problem.row), Rows(problem.functions.rows), problem.weights, problem.columns)
    result = split(kernel, sides)
    return ("left out", leave_out(problem)) if result is None or _is_one_term(result) else ("exact", result)


def _is_one_term(result: Split) -> bool:
    """Whether the sum has no parts but one whole kernel, which says nothing."""
    parts = [part for part in result.parts if part.kind != "constant"]
    return len(parts) == 1 and parts[0].kind == "term"


def _by_rows(problem: Explained) -> Split:
    """``a_i k(x_i, x)`` of every row of the model."""
    if not len(problem.weights):
        return Split([], np.zeros(0))
    if problem.origin is None:
        raise ParameterError(
            'this model does not keep which rows of its fit its values belong to; use by="parts", which gives columns.'
        )
    gram: Any = problem.functions.gram(problem.row, np.float64)
    block = np.asarray(gram.dense(), dtype=np.float64)
    parts = [Part("training row", f"row {i}", (i,)) for i in problem.origin.tolist()]
    return Split(parts, block[0] * problem.weights)


def _without_zeros(result: Split) -> Split:
    kept = np.flatnonzero(result.values != 0)
    if len(kept) == len(result.parts):
        return result
    return Split([result.parts[i] for i in kept], result.values[kept], result.item)
