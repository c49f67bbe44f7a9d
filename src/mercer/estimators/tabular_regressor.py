"""Regression on a table of any columns, with nothing to choose."""

from __future__ import annotations

import copy
import dataclasses
import time
import warnings
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer._errors import MercerWarning, ParameterError, warn_user
from mercer._types import Matrix, Positions, RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.objects import short
from mercer.data.statements import Floats, Is, Number
from mercer.engine import memory
from mercer.estimators.gaussian_process_regressor import GaussianProcessRegressor
from mercer.estimators.shared.expansion import KernelExpansion
from mercer.estimators.shared.intervals import Intervals, check_coverage
from mercer.estimators.shared.targets import check_numbers, warn_of_constant, warn_of_outlier
from mercer.estimators.tabular.base import TabularModel
from mercer.estimators.tabular.left_out import MOST_ROWS, LeftOutRows, error_quantiles, student_quantiles
from mercer.estimators.tabular.new_gaps import FEW_DRAWS, NewGaps, have_new_categories
from mercer.kernels import Kernel

# A known variance for each row, so that nearly equal rows do not make the covariance singular.
_NUGGET = 1e-8
# Where the process is worse than the mean, its noise is raised to the first share of its variance, and tenfold again up
# to the last one, where it is almost the mean.
_RAISED_NOISE, _MOST_NOISE = 0.01, 1e4
# The kernel is learnt with the rows that are then left out. Of three columns, intervals for 90 % contained 80 % of new
# rows with 10 and 20 rows, and 87 % with 30 to 60. With fewer than ten rows its parameters have a prior.
_FEW_FOR_QUANTILES = 30


class TabularRegressor(RegressorMixin, TabularModel):
    r"""Regression on a data frame or array, with nothing to choose: predictions, their uncertainty, and relevance.

    A Gaussian process whose kernel is the sum of a smooth term, a rough one, and one for each column of text, with a
    length scale for each column in each:

    .. math:: k(x, z) = a \, k_{5/2}\Bigl(\sqrt{\textstyle\sum_c (x_c - z_c)^2 / \ell_c^2}\Bigr)
              + b \exp\Bigl(-\textstyle\sum_c |x_c - z_c| / m_c\Bigr) + \sum_t s_t \, k_{\mathrm{text}}(x_t, z_t)

    Of more than 100 columns, those that are about equally associated with y share a length scale: the first three in
    the order of the correlations of their scores, or the squares of these, with y, then 12, 48 and so on.
    All parameters maximise the evidence; with fewer than ten rows, their logarithms also have a normal prior with a
    standard deviation of 1. Numbers are mapped to normal scores, which bends functions that are linear in
    numbers with long tails: where ridge regression on the numbers as they are predicts rows that are left out better,
    the kernel may have a linear term in them. Categories become indicators that share a length scale, dates become a
    number with season, weekday and time of day, and text is compared by a string kernel; texts
    that repeat are categories as well.
    Missing values need no treatment: they have an indicator of their own, and rows with gaps have a noise of their own,
    so that predictions for such rows are as uncertain as they were in training.

    Parameters
    ----------
    kinds : dict of str to {"number", "category", "date", "text"}, optional
        Kinds of columns that are not what they seem, such as numbers that are codes of categories. The columns of an
        array are called x0, x1, ... By default text is a number where at least 95 % of the entries are numbers in
        digits or words such as NA; digits with leading zeros are categories. Other text is a category where values
        repeat, and text where more than half of over 20 values differ, or where sentences are seldom repeated.
    search_rows : int, default=1500
        Most rows by which the kernel is learnt, drawn at random; the fit then uses all.
    max_rows : int, optional
        Most rows that the fit uses, drawn at random. None for as many as the memory budget allows, at most 20,000.
        Where rows are left out, a warning and ``certificate_.storage`` say so.
    warm_start : bool, default=False
        Whether another call of ``fit`` begins the search for the kernel where the previous one ended, which takes
        fewer evaluations on similar rows.
    random_state : int, RandomState or None, default=0
        Seed of the draws.
    n_jobs : int, optional
        Number of threads; None for all cores. The result is bitwise the same for any number.

    Attributes
    ----------
    model_ : GaussianProcessRegressor
        The fitted process, on encoded rows and standardised targets.
    encoder_ : ColumnEncoder
        The fitted encoding of the columns.
    kinds_ : dict of str to str
        What each column was taken for.
    kernel_ : Kernel
        The learnt kernel, on encoded rows.
    noise_ : float
        Variance of the noise of a row of weight 1, as a share of that of y. Where predictions for rows that are left
        out were worse than the mean of the others, it is larger than the evidence chose. That of a single row is the
        variance of the process.
    gap_noise_ : ndarray of shape (g,)
        For each column with missing values, the variance that a row without a value there has in addition.
    target_mean_, target_scale_ : float
        Mean and standard deviation of y; the process learns y on this scale. The scale of equal numbers is their size,
        or 1 for zeros.
    relevance_ : ndarray of shape (n_features_in_,)
        For each column, how much the predictions f change without it, relative to their variance:
        :math:`\mathrm E (f(x) - f(x'))^2 / (2 \operatorname{Var} f)`, where x' is x with that column from another row.
        It is about 1 at most for columns that are independent; those of columns that act together overlap.
    residual_quantiles_ : ndarray of shape (q,)
        Ascending quantiles of the errors of training rows, each left out in turn, in units of their predicted standard
        deviations.
    search_ : Search
        The search for the parameters.
    n_rows_ : int
        Number of different rows that were learnt from.
    certificate_ : Certificate
        Accuracy of the linear system, time and memory; its iterations are evaluations of the evidence.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has names that are all texts.

    See Also
    --------
    TabularClassifier : The same for labels.
    GaussianProcessRegressor : With a kernel of your choice.

    Notes
    -----
    The fit takes :math:`n^3 / 3` operations and :math:`8 n^2` bytes for n rows, and each of the 20 to 60 evaluations of
    the search about :math:`3 m^3` operations for its m rows: 20,000 rows take one to two minutes on two cores, which is
    why ``max_rows`` is 20,000 by default.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning" (2006), chapters 2, 4 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from mercer import TabularRegressor
    >>> rng = np.random.default_rng(0)
    >>> homes = pd.DataFrame({"size": rng.uniform(40, 140, 80), "town": rng.choice(["Ulm", "Zug"], 80)})
    >>> price = homes["size"] * np.where(homes["town"] == "Zug", 9.0, 5.0)
    >>> homes.loc[3, "size"] = None
    >>> model = TabularRegressor().fit(homes, price)
    >>> mean, std = model.predict(pd.DataFrame({"size": [100.0], "town": ["Zug"]}), return_std=True)
    >>> bool(850 < mean[0] < 950)
    True
    >>> low, high = model.predict_quantiles(homes[:1], [0.05, 0.95])[0]
    >>> bool(low < price[0] < high)
    True
    """

    # Wide enough that columns which say nothing drop out.
    _deviation = 0.8
    _few_rows = 10
    _fitted = Fitted(
        {
            "model_": Is(GaussianProcessRegressor),
            "residual_quantiles_": Floats("q"),
            "target_mean_": Number(),
            "target_scale_": Number(least=np.finfo(float).tiny),
        },
        rules=(("quantiles are not ascending", lambda m: bool((np.diff(m.residual_quantiles_) >= 0).all())),),
    )

    def __init__(
        self,
        *,
        kinds: Mapping[str, str] | None = None,
        search_rows: int = 1500,
        max_rows: int | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.kinds = kinds
        self.search_rows = search_rows
        self.max_rows = max_rows
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the encoding and the kernel, and condition the process on the rows.

        Parameters
        ----------
        X : pandas.DataFrame or array-like of shape (n, d)
            Columns of numbers, categories, dates and text; values may be missing.
        y : array-like of shape (n,)
            Numbers.
        sample_weight : float or array-like of shape (n,), optional
            Weight of each row, as a number of repetitions: a row of weight w has noise of a w-th of the variance.

        Returns
        -------
        self

        Raises
        ------
        DataError, ParameterError, MemoryBudgetError
            If the table or a parameter cannot be used, y is missing or not finite in a row, or even the search exceeds
            the memory budget.

        Warns
        -----
        MercerWarning
            If rows are left out, y is constant, or one target makes up nearly all squared errors.
        """
        start_time = time.perf_counter()
        self._check_parameters()
        X = self._check_table(X, reset=True)
        X, y, weights = self._with_weights(X, check_numbers(self, y, X, several=False), sample_weight)
        warn_of_constant(y, None)
        warn_of_outlier(y, weights)
        with memory.track() as account:
            features, y, weights, _ = self._encode(X, y, weights, numbers=True)
            rows, random = self._kept_rows(len(y), None)
            # In units of a power of two, whose squares neither overflow nor vanish.
            exponent = int(np.frexp(np.abs(y).max())[1]) - 1
            sized = np.ldexp(y, -exponent)
            mean = np.average(sized, weights=weights)
            spread = np.sqrt(np.average(np.square(sized - mean), weights=weights))
            self.target_mean_ = float(np.ldexp(mean, exponent))
            # Of one number, or of equal ones, the scale is not known: it is taken to be their size.
            self.target_scale_ = float(np.ldexp(spread, exponent)) or abs(self.target_mean_) or 1.0
            targets = (y - self.target_mean_) / self.target_scale_
            features = self._choose(features, targets, rows, weights)
            self.relevance_ = self._relevance(self.model_.predict, features, random)
        self.certificate_ = self._certified(len(y), time.perf_counter() - start_time, account.peak)
        return self

    def _choose(self, features: Any, targets: Vector, rows: Positions, weights: Vector | None) -> Any:
        """Fit with or without a linear term in numbers as they are; return the features of the better one.

        The term is tried where a linear model predicts rows that are left out better than the process does without it:
        normal scores bend linear functions of numbers with long tails.
        """
        whole = self.encoder_
        self.encoder_, plain = whole.without_numbers(features)
        left_out = self._condition(plain, targets, rows, weights)
        some = np.sort(rows[:MOST_ROWS])
        # Some linear function always fits fewer rows than columns exactly, and a few errors say nothing.
        most = len(some) if len(some) >= self._few_rows else len(some) / 2
        if not 0 < len(whole.numbers_) < most or not left_out.is_worse_than_linear(features[some]):
            return plain
        other = copy.copy(self)
        other.encoder_ = whole
        other._condition(features, targets, rows, weights)
        if other.search_.value <= self.search_.value:
            return plain
        self.__dict__ |= vars(other)
        return features

    def _condition(self, features: Any, targets: Vector, rows: Positions, weights: Vector | None) -> LeftOutRows:
        """Learn the kernel and fit the process to the rows."""
        kernel = self._learn(features, targets[:, None], rows, weights).kernel
        if len(rows) == 1:
            # No other row shows how much targets vary: the noise is taken to be as large as the process.
            self.noise_ = float(np.mean(kernel.diagonal(features[rows])))
        left_out = self._left_out(kernel, features, targets, rows, weights)
        self.residual_quantiles_ = left_out.standardised()
        used = np.sort(rows)
        few = len(used) <= MOST_ROWS
        self.model_ = left_out.model if few else self._process(kernel, features, targets, used, weights)
        return left_out

    def _process(
        self, kernel: Kernel, features: Any, targets: Vector, rows: Positions, weights: Vector | None
    ) -> GaussianProcessRegressor:
        """The process given some rows."""
        alpha: Any = self._variances(features[rows])
        if weights is not None:
            alpha = alpha / weights[rows]
        elif not self.gap_noise_.any():
            alpha = self.noise_ + _NUGGET
        model = GaussianProcessRegressor(kernel, alpha=alpha, optimizer=None, n_jobs=self.n_jobs)
        with warnings.catch_warnings():
            # The user has been warned of a constant y and of an outlier, and these targets are not in the unit of y.
            # What is advised about noise has been done by the search, or is not the user's to do.
            told = ("y has the value .* in every row", "one target, in row")
            for message in (*told, "GaussianProcessRegressor: "):
                warnings.filterwarnings("ignore", message, MercerWarning)
            return model.fit(features[rows], targets[rows])

    def _variances(self, features: Any) -> Vector:
        """Of the noise of encoded rows of weight 1, with what keeps the covariance matrix regular."""
        of_gaps = self.encoder_.missing(features) @ self.gap_noise_
        return np.asarray(self.noise_ + _NUGGET + of_gaps)

    def _left_out(
        self, kernel: Kernel, features: Any, targets: Vector, rows: Positions, weights: Vector | None
    ) -> LeftOutRows:
        """Predictions for some rows, each left out; sets ``noise_``, so that they are no worse than the mean.

        An extreme target can have the evidence of a function that goes through it, and through the noise of all others.
        """
        some = np.sort(rows[:MOST_ROWS])
        counts = np.ones(len(some)) if weights is None else weights[some]
        variance = float(np.mean(kernel.diagonal(features[some])))
        while True:
            model = self._process(kernel, features, targets, some, weights)
            noise = self._variances(features[some])
            left_out = LeftOutRows.of(model, targets[some], noise, counts)
            if left_out.is_better_than_the_mean() or self.noise_ >= _MOST_NOISE * variance:
                return left_out
            self.noise_ = max(10.0 * self.noise_, _RAISED_NOISE * variance)

    def predict(self, X: RowsLike, return_std: bool = False) -> Any:
        """Return means of new rows, and how sure they are.

        Parameters
        ----------
        X : pandas.DataFrame or array-like of shape (m, d)
            Categories that were not seen in training are allowed. A number or date that is missing where none was in
            training is averaged over those of training rows.
        return_std : bool, default=False
            Whether to return the standard deviations of new observations as well.

        Returns
        -------
        mean : ndarray of shape (m,)
        std : ndarray of shape (m,)
        """
        features, gaps = self._encoded(X)
        if return_std:
            return self._with_deviations(features, gaps)
        mean = self.model_.predict(features)
        if gaps is not None:
            mean[gaps.rows] = gaps.predicted(self.model_.predict).mean(axis=0)
        return self.target_mean_ + self.target_scale_ * mean

    def _with_deviations(self, features: Any, gaps: NewGaps | None) -> tuple[Vector, Vector]:
        """Means and standard deviations of observations in encoded rows."""
        mean, variance = self._moments(features)
        if gaps is not None:
            means = gaps.predicted(self.model_.predict)
            variances = gaps.predicted(lambda draws: self._moments(draws)[1], FEW_DRAWS)
            mean[gaps.rows] = means.mean(axis=0)
            variance[gaps.rows] = variances.mean(axis=0) + means.var(axis=0, ddof=1)
        return self.target_mean_ + self.target_scale_ * mean, self.target_scale_ * np.sqrt(variance)

    def _moments(self, features: Any) -> tuple[Vector, Vector]:
        """Means and variances of observations in encoded rows, on the scale of the process."""
        mean, std = self.model_.predict(features, return_std=True, observation=False)
        return mean, np.square(std) + self._variances(features)

    @property
    def _training_features(self) -> Any:
        return self.model_.X_train_

    @property
    def _expansion(self) -> KernelExpansion:
        functions, scale = self.model_._expansion, self.target_scale_
        mean = self.target_mean_ + scale * np.ravel(self.model_._y_mean)
        return dataclasses.replace(functions, dual_coef=scale * functions.dual_coef, offsets=mean)

    def predict_quantiles(self, X: RowsLike, quantiles: ArrayLike = (0.05, 0.5, 0.95)) -> Matrix:
        r"""Return quantiles of new observations: the mean plus ``std`` times a quantile of standardised errors.

        The errors are those of training rows, each left out in turn, so that an interval has the coverage that it had
        in training, also where the noise is not Gaussian. Beyond the largest error the tails are those of Student's
        distribution with n - 1 degrees of freedom for n rows: Gaussian for many rows, and wide for a few, which say
        little of the noise. So are the quantiles of rows with a gap in a column that had none in training, and of rows
        with a category that was not in training. Categories of a single training row are encoded as one, and where a
        column has such categories, a new one is taken for one of them.

        Parameters
        ----------
        X : pandas.DataFrame or array-like of shape (m, d)
        quantiles : array-like of shape (q,), default=(0.05, 0.5, 0.95)
            Between 0 and 1.

        Returns
        -------
        ndarray of shape (m, q)

        Raises
        ------
        ParameterError
            If a quantile is not between 0 and 1.

        Warns
        -----
        MercerWarning
            If the fit had 10 to 30 rows: since they have also chosen the kernel, too few new observations are inside.
        """
        return self.predict_with_quantiles(X, quantiles)[2]

    def predict_with_quantiles(self, X: RowsLike, quantiles: ArrayLike) -> tuple[Vector, Vector, Matrix]:
        """Return means, standard deviations and quantiles of new observations, in one pass over the rows.

        Parameters
        ----------
        X : pandas.DataFrame or array-like of shape (m, d)
        quantiles : array-like of shape (q,)
            Between 0 and 1; may be empty.

        Returns
        -------
        mean, std : ndarray of shape (m,)
            As from :meth:`predict`.
        values : ndarray of shape (m, q)
            As from :meth:`predict_quantiles`, which has the same errors and warnings.
        """
        check_is_fitted(self, "model_")
        wanted = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
        if wanted.ndim != 1 or not ((wanted > 0) & (wanted < 1)).all():
            raise ParameterError(f"quantiles must be numbers between 0 and 1, but are {short(quantiles)}.")
        count = len(self.residual_quantiles_)
        if len(wanted) and self._few_rows <= count <= _FEW_FOR_QUANTILES:
            warn_user(
                f"quantiles from {count} rows contain fewer new observations than they say, about 80 % between 5 % and "
                "95 %, because the same rows have chosen the kernel. Calibrate intervals by folds: "
                "ConformalRegressor(TabularRegressor()).fit(X, y).interval(X_new).",
                MercerWarning,
            )
        features, gaps = self._encoded(X)
        mean, std = self._with_deviations(features, gaps)
        errors = np.tile(error_quantiles(self.residual_quantiles_, wanted), (len(mean), 1))
        # The errors of training rows do not show what a new category or a new gap costs.
        new = have_new_categories(features, self._training_features, len(self.encoder_.sources_))
        if gaps is not None:
            new[gaps.rows] = True
        errors[new] = student_quantiles(count, wanted)
        return mean, std, np.asarray(mean[:, None] + std[:, None] * errors)

    def interval(self, X: RowsLike, coverage: float = 0.9) -> Intervals:
        """Return intervals of new observations: the ``predict_quantiles`` (1 - coverage) / 2 and (1 + coverage) / 2.

        Parameters
        ----------
        X : pandas.DataFrame or array-like of shape (m, d)
        coverage : float, default=0.9
            The share of new observations that the intervals are to contain, between 0 and 1.

        Returns
        -------
        Intervals
            ``lower`` and ``upper`` of shape (m,). Nothing is guaranteed, because all rows had a part in the choice of
            the kernel.

        Raises
        ------
        ParameterError
            If the coverage is not between 0 and 1.
        """
        coverage = check_coverage(coverage)
        lower, upper = self.predict_quantiles(X, [(1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0]).T
        return Intervals(lower, upper, coverage, "quantiles of left-out errors", 0.0)
