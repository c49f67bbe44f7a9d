"""The list of sample data sets: two bundled here, those of scikit-learn, and some that are generated.

Their rows come from :mod:`mercer.data.sample_rows`, which needs scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mercer._errors import DataError
from mercer.data.words import closest_names


@dataclass(frozen=True)
class Sample:
    """A sample data set: its name, task, size, description, and the roles of its columns."""

    name: str
    task: str
    rows: int
    columns: int
    about: str
    roles: dict[str, str] = field(default_factory=dict)


_SAMPLES = {
    sample.name: sample
    for sample in (
        Sample("airfoil", "regression", 1503, 5, "noise of wings in a wind tunnel"),
        Sample("cars", "regression", 398, 8, "miles per gallon of cars of 1970 to 1982"),
        Sample("iris", "classification", 150, 4, "species by size of leaves"),
        Sample("wine", "classification", 178, 13, "cultivars by chemical analysis"),
        Sample("breast_cancer", "classification", 569, 30, "tumours by their cell nuclei"),
        Sample("digits", "classification", 1797, 64, "handwritten, 8 x 8 pixels"),
        Sample("diabetes", "regression", 442, 10, "progress after one year"),
        Sample("moons", "classification", 500, 2, "generated: two half moons"),
        Sample("circles", "classification", 500, 2, "generated: ring round a disc"),
        Sample("friedman1", "regression", 500, 10, "generated: 5 noise columns"),
        Sample("friedman2", "regression", 500, 4, "generated: impedance"),
        Sample("sinc", "regression", 500, 1, "generated: noisy sin(x)/x"),
        Sample("swiss_roll", "regression", 1000, 3, "generated: place on a roll"),
        Sample("messages", "classification", 240, 2, "generated: text, and its hour", {"message": "text"}),
    )
}


def samples() -> tuple[Sample, ...]:
    """Return every sample data set with its task, size and description, without loading any.

    >>> samples()[0].rows
    1503
    """
    return tuple(_SAMPLES.values())


def find_sample(name: str) -> Sample:
    """Return the sample data set of that name, without loading it.

    Raises
    ------
    DataError
        If no data set has that name; the message suggests the closest names.

    Examples
    --------
    >>> find_sample("moons").task
    'classification'
    """
    if name not in _SAMPLES:
        matches = closest_names(name, _SAMPLES)
        offer = f"Did you mean {' or '.join(matches)}? " if matches else ""
        raise DataError(f"there is no sample {name!r}. {offer}The samples are {', '.join(_SAMPLES)}.")
    return _SAMPLES[name]
