"""Small random tables as text: columns in many dresses, and the files that hold the same table."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

GAPS = ["", "NA", "?", "NaN", "null"]
WORDS = [
    "Ulm",
    "Zürich",
    'the "old" one',
    "a, b",
    "x; y",
    "東京",
    "née",
    "-",
    "no",
    "True Blue",
    "N",
    "é\tü",
    "two\nlines",
]


@dataclass(frozen=True)
class Table:
    """The text of all fields, by column, and what each column holds: number, boolean, category or date."""

    columns: dict[str, list[str]]
    kinds: dict[str, str]
    target: str
    task: str

    @property
    def rows(self) -> int:
        return len(self.columns[self.target])

    def take(self, rows: np.ndarray | list[int]) -> Table:
        """Some of the rows, in the order given."""
        columns = {name: [values[row] for row in rows] for name, values in self.columns.items()}
        return Table(columns, self.kinds, self.target, self.task)

    def in_order(self, names: list[str]) -> Table:
        """The columns in another order."""
        return Table({name: self.columns[name] for name in names}, self.kinds, self.target, self.task)

    def frame(self) -> pd.DataFrame:
        """With the types that the columns have: what a Parquet file of the table holds."""
        return pd.DataFrame({name: _typed(values, self.kinds[name]) for name, values in self.columns.items()})

    def texts(self) -> pd.DataFrame:
        """Text with None for a gap, as programs that read text pass it; labels that are booleans have their type."""
        gaps = {name: [None if value in GAPS else value for value in its] for name, its in self.columns.items()}
        frame = pd.DataFrame(gaps, dtype=object)
        if self.kinds[self.target] == "boolean":
            frame[self.target] = _typed(self.columns[self.target], "boolean")
        return frame


def _typed(values: list[str], kind: str) -> object:
    known = [None if value in GAPS else value for value in values]
    if kind == "number":
        return np.array([np.nan if value is None else float(value) for value in known])
    if kind == "whole":
        return pd.array([None if value is None else int(value) for value in known], dtype="Int64")
    if kind == "boolean":
        return pd.array([None if value is None else value.lower() == "true" for value in known], dtype="boolean")
    if kind == "date":
        return pd.to_datetime(pd.Series(known), format="ISO8601")
    return np.array(known, dtype=object)


def random_table(seed: int) -> Table:
    """A table of 24 to 60 rows and 2 to 5 columns, whose target depends on all of them."""
    rng = np.random.default_rng([seed, 35])
    n = int(rng.integers(24, 61))
    columns: dict[str, list[str]] = {}
    kinds: dict[str, str] = {}
    effect = np.zeros(n)
    for number in range(int(rng.integers(2, 6))):
        dress = _DRESSES[int(rng.integers(len(_DRESSES)))]
        kind, texts, values = dress(rng, n)
        name = ["x", "the size", "Größe", "a.b", "n (of 2)"][number]
        columns[name], kinds[name] = _with_gaps(rng, texts), kind
        effect += (values - values.mean()) / (values.std() or 1.0)
    effect += 0.1 * rng.normal(size=n)
    target = "the target" if rng.uniform() < 0.3 else "y"
    task = "regression" if rng.uniform() < 0.6 else "classification"
    if task == "regression":
        columns[target], kinds[target] = [f"{value:.4f}" for value in effect], "number"
    else:
        labels = [["yes", "no"], ["007", "012"], ["a, b", "c"], ["1", "2"], ["true", "false"], ["é", "中"]]
        low, high = labels[int(rng.integers(len(labels)))]
        columns[target] = [high if value > np.median(effect) else low for value in effect]
        kinds[target] = {"1": "whole", "true": "boolean"}.get(low, "category")
    names = list(columns)
    rng.shuffle(names)
    return Table({name: columns[name] for name in names}, kinds, target, task)


def _with_gaps(rng: np.random.Generator, texts: list[str]) -> list[str]:
    if rng.uniform() < 0.6:
        return texts
    gap = GAPS[int(rng.integers(len(GAPS)))]
    return [gap if rng.uniform() < 0.12 else text for text in texts]


def _floats(rng: np.random.Generator, n: int) -> tuple[str, list[str], np.ndarray]:
    values = rng.normal(size=n) * 10.0 ** rng.integers(-6, 7)
    form = ["{:.3g}", "{:.17g}", "{:.2e}", "{:+.5g}"][int(rng.integers(4))]
    texts = [form.format(value) for value in values]
    return "number", texts, np.array([float(text) for text in texts])


def _whole(rng: np.random.Generator, n: int) -> tuple[str, list[str], np.ndarray]:
    values = rng.integers(0, int(rng.choice([3, 50, 10**6])), n)
    return "whole", [str(value) for value in values], values.astype(float)


def _big(rng: np.random.Generator, n: int) -> tuple[str, list[str], np.ndarray]:
    values = 10**17 + rng.integers(0, 10**16, n)
    return "whole", [str(value) for value in values], values.astype(float)


def _codes(rng: np.random.Generator, n: int) -> tuple[str, list[str], np.ndarray]:
    values = rng.integers(0, 4, n)
    return "category", [["007", "012", "120", "0450"][value] for value in values], values.astype(float)


def _versions(rng: np.random.Generator, n: int) -> tuple[str, list[str], np.ndarray]:
    names = ["1.1", "1.10", "beta", "2.0", "true", "12e4", "rc"]
    values = rng.integers(0, len(names), n)
    # Numbers are fewer than half, so that none of the others is a mistake among numbers.
    values = np.where(rng.uniform(size=n) < 0.5, 2, values)
    return "category", [names[value] for value in values], values.astype(float)


def _words(rng: np.random.Generator, n: int) -> tuple[str, list[str], np.ndarray]:
    names = rng.choice(WORDS, size=int(rng.integers(2, 6)), replace=False)
    values = rng.integers(0, len(names), n)
    return "category", [str(names[value]) for value in values], values.astype(float)


def _booleans(rng: np.random.Generator, n: int) -> tuple[str, list[str], np.ndarray]:
    names = [("false", "true"), ("False", "True"), ("FALSE", "TRUE")][int(rng.integers(3))]
    values = rng.integers(0, 2, n)
    return "boolean", [names[value] for value in values], values.astype(float)


def _dates(rng: np.random.Generator, n: int) -> tuple[str, list[str], np.ndarray]:
    hours = rng.integers(0, 24 * 700, n)
    form = ["%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S"][int(rng.integers(3))]
    days = pd.Timestamp("2023-01-01") + pd.to_timedelta(hours, unit="h")
    return "date", list(days.strftime(form)), hours.astype(float)


def _sentences(rng: np.random.Generator, n: int) -> tuple[str, list[str], np.ndarray]:
    words = ["late", "early", "guest", "room", "left", "came", "Hôtel", "quiet"]
    texts = [" ".join(rng.choice(words, size=6)) for _ in range(n)]
    return "category", texts, np.array([text.count("late") for text in texts], dtype=float)


_DRESSES = [_floats, _floats, _whole, _big, _codes, _versions, _words, _words, _booleans, _dates, _sentences]


@dataclass(frozen=True)
class Form:
    """How a file of separated values is written."""

    separator: str = ","
    end: str = "\n"
    quote_all: bool = False
    encoding: str = "utf-8"
    suffix: str = ".csv"
    decimal: str = "."


def random_form(rng: np.random.Generator, table: Table) -> Form:
    """A form that holds the table without loss."""
    separator = str(rng.choice([",", ";", "\t", "|"]))
    floats = any(
        kind == "number" and any("." in text for text in table.columns[name]) for name, kind in table.kinds.items()
    )
    # Texts such as 1.10 among words say nothing of the mark, nor do points in numbers of others.
    decimal = "," if separator == ";" and floats and rng.uniform() < 0.5 else "."
    return Form(
        separator,
        str(rng.choice(["\n", "\r\n", "\r"])),
        bool(rng.uniform() < 0.3),
        str(rng.choice(["utf-8", "utf-8-sig", "utf-16"])),
        str(rng.choice([".csv", ".txt", ".csv.gz"])),
        decimal,
    )


def write(path: Path, table: Table, form: Form | None = None) -> Path:
    """Write the table next to ``path``, with the suffix of the form; returns the file."""
    form = form or Form()
    fields = {
        name: [value.replace(".", form.decimal) for value in its] if table.kinds[name] == "number" else its
        for name, its in table.columns.items()
    }
    lines = [form.separator.join(_quoted(field, form) for field in row) + form.end for row in _rows(fields)]
    data, file = "".join(lines).encode(form.encoding), path.with_name(path.name + form.suffix)
    file.write_bytes(gzip.compress(data) if form.suffix.endswith(".gz") else data)
    return file


def _rows(fields: dict[str, list[str]]) -> list[tuple[str, ...]]:
    return [tuple(fields), *zip(*fields.values(), strict=True)]


def _quoted(field: str, form: Form) -> str:
    """A field in quotation marks where it needs them; Python's writer leaves a line break that ends no line."""
    if form.quote_all or any(mark in field for mark in (form.separator, '"', "\n", "\r")):
        return '"' + field.replace('"', '""') + '"'
    return field
