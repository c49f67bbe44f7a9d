"""Load mutated model files, and use what loads; one line of JSON for each case.

By hand, with array bounds checked in compiled loops::

    NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=/tmp/bounds python tests/fuzz/model_worker.py --cases 20000
"""

from __future__ import annotations

import argparse
import copy
import json
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import scipy.sparse as sp
from model_cases import CASES
from mutations import write_mutant
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mercer import load, save
from mercer._errors import DataError, MemoryBudgetError, MercerError, ModelFileError

METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "transform",
    "score_samples",
    "latent",
    "kneighbors",
    "latent_mean_and_variance",
    "leave_one_out",
    "deviations",
)
# A file may hold any finite numbers; sums of such large ones overflow in an honest model, too.
LARGE = 1e60
SECONDS = 30


def answer(model: Any, name: str, rows: Any) -> Any:
    if name == "deviations":
        return model.predict(rows, return_std=True)
    return getattr(model, name)() if name == "leave_one_out" else getattr(model, name)(rows)


def answers(model: Any, rows: Any) -> dict[str, Any]:
    """What each method of an honest model says of the rows; without those that it does not offer."""
    results: dict[str, Any] = {}
    for name in METHODS:
        try:
            results[name] = answer(model, name, rows)
        except (MercerError, AttributeError, TypeError):
            continue
    return results


def answers_of_another(model: Any, expected: dict[str, Any], rows: Any) -> dict[str, Any]:
    """What a loaded model says of the rows, by the methods that the honest one offers."""
    results: dict[str, Any] = {}
    for name in expected:
        try:
            results[name] = answer(model, name, rows)
        except DataError:
            # A model of other rows, such as series of more channels, cannot compare these with its own. It must have an
            # answer for its own.
            if not all(np.isfinite(part).all() for part in parts(model.predict(model.X_fit_))):
                raise
    return results


def parts(answer: Any) -> list[np.ndarray]:
    if isinstance(answer, (list, tuple)):
        return [part for item in answer for part in parts(item)]
    return [answer.toarray() if sp.issparse(answer) else np.asarray(answer)]


def unlike(result: dict[str, Any], honest: dict[str, Any]) -> bool:
    return any(
        name not in result
        or any(a.tobytes() != b.tobytes() for a, b in zip(parts(result[name]), parts(answer), strict=False))
        for name, answer in honest.items()
    )


def not_finite(result: dict[str, Any], but: set[str]) -> str | None:
    """The first method that answers with NaN or infinity where the honest model does not; log 0 is minus infinity."""
    for name, answer in result.items():
        if name == "predict_log_proba":
            answer = np.exp(answer)
        for part in parts(answer):
            if part.dtype.kind == "f" and name not in but and not np.isfinite(part).all():
                return name
    return None


def holds_large_numbers(model: Any, visited: set[int] | None = None, depth: int = 0) -> bool:
    """Whether some number in a model is so large, or so small, that what is made from it overflows."""
    visited = set() if visited is None else visited
    if id(model) in visited or depth > 12:
        return False
    visited.add(id(model))
    if isinstance(model, np.ndarray) and model.dtype.kind == "f" and model.size:
        size = np.abs(model[model != 0])
        return bool(size.size and (size.max() > LARGE or size.min() < 1 / LARGE))
    if isinstance(model, (float, int, np.number)) and not isinstance(model, bool):
        return model != 0 and not 1 / LARGE < abs(model) < LARGE
    if isinstance(model, (list, tuple)):
        return any(holds_large_numbers(item, visited, depth + 1) for item in model)
    if isinstance(model, dict):
        return any(holds_large_numbers(item, visited, depth + 1) for item in model.values())
    return any(holds_large_numbers(item, visited, depth + 1) for item in getattr(model, "__dict__", {}).values())


def learn_more(model: Any, rows: Any, honest: Any) -> None:
    """What goes on from the state of a fit; parameters that make no sense are documented errors."""
    if hasattr(model, "partial_fit") and hasattr(model, "_walk") and hasattr(honest, "_walk"):
        size = rows.shape[0]
        labels = getattr(model, "classes_", None)
        y = np.linspace(0.0, 1.0, size) if labels is None else labels[np.arange(size) % len(labels)]
        if labels is None and not getattr(model, "_single", True):
            y = np.tile(y[:, None], (1, len(model.intercept_)))
        try:
            copy.deepcopy(model).partial_fit(rows, y, *([] if labels is None else [labels]))
        except MercerError:
            return


class Hang(BaseException):
    """A case took too long."""


def _ring(*_: Any) -> None:
    raise Hang


def run_case(path: Path, name: str, honest: Any, rows: Any, expected: dict[str, Any], but: set[str]) -> str:
    try:
        model = load(path)
    except (ModelFileError, MemoryBudgetError):
        return "refused"
    if type(model) is not type(honest):
        return "another object"
    try:
        check_is_fitted(model)
    except NotFittedError:
        return "not fitted"
    result = answers_of_another(model, expected, rows)
    odd = not_finite(result, but)
    if odd is not None and not holds_large_numbers(model):
        raise AssertionError(f"{odd} is not finite")
    learn_more(model, rows, honest)
    return "other" if unlike(result, expected) else "same"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", default="", help="a folder for the files of failures")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    resource.setrlimit(resource.RLIMIT_AS, (12 * 2**30, 12 * 2**30))
    signal.signal(signal.SIGALRM, _ring)
    names = [name for name in CASES if options.only in name]
    counts: Counter[str] = Counter()
    if options.keep:
        Path(options.keep).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "mutant.mercer"
        models: dict[str, Any] = {}
        for number in range(options.first, options.first + options.cases):
            name = names[number % len(names)]
            source = Path(folder) / f"{names.index(name)}.mercer"
            if name not in models:
                make, rows = CASES[name]
                honest = make()
                try:
                    save(honest, source)
                except ModelFileError:
                    # A kernel with a function of Python in it.
                    models[name] = None
                    continue
                expected = answers(honest, rows)
                odd = {key for key, answer in expected.items() if not_finite({key: answer}, set())}
                models[name] = honest, rows, expected, odd
            if models[name] is None:
                continue
            rng = Random(f"{options.seed}/{number}")
            kind = write_mutant(source.read_bytes(), source, target, rng)
            print(json.dumps({"case": number, "of": name, "kind": kind, "begun": True}), flush=True)
            signal.alarm(SECONDS)
            try:
                outcome = run_case(target, name, *models[name])
                problem = ""
            except (Exception, Hang) as error:
                outcome = "failed"
                trail = traceback.extract_tb(error.__traceback__)[-4:]
                places = " <- ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(trail))
                problem = f"{type(error).__name__}: {error} :: {places}"
                if options.keep:
                    (Path(options.keep) / f"{number}.mercer").write_bytes(target.read_bytes())
            signal.alarm(0)
            counts[outcome] += 1
            line = {"case": number, "of": name, "kind": kind, "outcome": outcome, "problem": problem}
            print(json.dumps(line), flush=True)
    print(json.dumps({"total": counts}), flush=True)


if __name__ == "__main__":
    main()
