"""The picture of contributions: what is coloured, what stands in it, and what happens to rows without places."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot

from mercer import SVC, Graph, KernelRidge
from mercer._errors import ParameterError
from mercer.explain import Contributions, Part, contributions
from mercer.kernels import RBF, Spectrum, Subtree, VertexHistogram
from mercer.plotting import ContributionsDisplay

TEXTS = ["abab", "abba", "cdcd", "ddcc"]


def of_text(row: str = "abcd") -> ContributionsDisplay:
    return ContributionsDisplay.from_estimator(SVC(kernel=Spectrum(2)).fit(TEXTS, [1, 1, 0, 0]), row)


def test_symbols_have_the_sums_of_their_positions() -> None:
    display = of_text("abcdab").plot(width=4)
    cells = display.cells_.get_array()
    assert cells.shape == (2, 4) and cells.mask.sum() == 2
    np.testing.assert_allclose(cells.compressed(), display.contributions.by_place())
    assert "".join(text.get_text() for text in display.texts_) == "abcdab"
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["0", "4"]
    assert display.cells_.norm.vmin == -display.cells_.norm.vmax
    assert "1 against 0" in display.ax_.get_title() and display.bars_ is None


def test_whole_positions_are_marked_below_their_symbols() -> None:
    display = of_text("abcdabcdabcd").plot()
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["0", "5", "10"]
    assert display.ax_.get_xticks().tolist() == [0.5, 5.5, 10.5]
    assert display.texts_[5].get_position()[0] == 5.5


def test_a_symbol_that_cannot_be_printed_has_a_sign() -> None:
    assert of_text("ab\n\x07").plot().texts_[2].get_text() == "\N{REPLACEMENT CHARACTER}"


def test_nodes_of_a_tree() -> None:
    trees = ["(S (N dog) (V run))", "(S (N cat) (V run))", "(S run)"]
    model = KernelRidge(kernel=Subtree()).fit(trees, [1.0, 2.0, 0.0])
    display = ContributionsDisplay.from_estimator(model, trees[0]).plot()
    assert [text.get_text() for text in display.texts_] == ["S", "N", "dog", "V", "run"]
    np.testing.assert_allclose(display.nodes_.get_array(), display.contributions.by_place())
    depth = display.nodes_.get_offsets()[:, 1]
    assert depth.tolist() == [0.0, -1.0, -2.0, -1.0, -2.0]


def test_nodes_of_a_graph_are_joined_by_lines() -> None:
    graphs = [Graph([(0, 1), (1, 2)], list("CCO")), Graph([(0, 1)], list("CN"))]
    model = KernelRidge(kernel=VertexHistogram()).fit(graphs, [1.0, -1.0])
    display = ContributionsDisplay.from_estimator(model, graphs[0]).plot()
    assert len(display.ax_.lines) == 2 and len(display.nodes_.get_offsets()) == 3
    assert [text.get_text() for text in display.texts_] == ["C", "C", "O"]


def test_bars_of_the_largest_parts_of_any_row() -> None:
    X = np.random.default_rng(0).normal(size=(30, 5))
    model = KernelRidge(kernel=RBF(1.0)).fit(X, X[:, 0])
    display = ContributionsDisplay.from_estimator(model, X[0]).plot(max_parts=3)
    found = display.contributions
    assert [bar.get_width() for bar in display.bars_][::-1] == found.values[found.top(3)].tolist()
    meaning, rest = display.ax_.get_title().splitlines()
    assert meaning.startswith("decision value") and rest.startswith("intercept") and rest.endswith("3 of 5 parts shown")
    assert "left out" in display.ax_.get_xlabel()
    with pytest.raises(ParameterError, match="kind='bars'"):
        display.plot(kind="places")


def test_bars_of_a_text_by_request_and_if_it_is_long() -> None:
    display = of_text()
    assert len(display.plot(kind="bars").bars_) == len(display.contributions.parts)
    long = of_text("abcd" * 501)
    assert long.plot().cells_ is None and len(long.bars_) == 20


def test_a_row_without_parts_has_an_empty_picture() -> None:
    display = of_text("").plot()
    assert len(display.bars_) == 0 and "decision value" in display.ax_.get_title()


def test_dollars_in_names_are_no_formulas() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    found = contributions(SVC().fit(X, np.where(X[:, 0] > 0, r"$\win$", r"$\lose$")), X[0])
    named = replace(found, parts=tuple(part._replace(name=rf"$\{part.name}$") for part in found.parts))
    tree = ContributionsDisplay.from_estimator(
        KernelRidge(kernel=Subtree()).fit([r"($\\S$ a)", "(S b)"], [1.0, 0.0]), r"($\\S$ a)"
    )
    for display in (ContributionsDisplay.from_contributions(named), tree):
        # Drawing a formula with unknown signs would end with an error.
        display.plot().figure_.canvas.draw()
    assert r"$\win$" in named.output and tree.texts_[0].get_text() == r"$\S$"


def test_it_is_drawn_into_given_axes() -> None:
    figure, axes = pyplot.subplots()
    height = figure.get_figheight()
    display = of_text().plot(axes)
    assert display.ax_ is axes and display.figure_ is figure and figure.get_figheight() == height


def test_known_contributions_are_shown() -> None:
    found = Contributions((Part("column", "age", (0,)),), np.array([0.5]), 0.0, 0.5, "exact", "", None)
    display = ContributionsDisplay.from_contributions(found).plot()
    assert display.contributions is found and list(display.frame()["part"]) == ["age"]
    again = ContributionsDisplay.from_contributions(
        contributions(SVC(kernel=Spectrum(2)).fit(TEXTS, [1, 1, 0, 0]), "ab")
    )
    assert again.plot().cells_ is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [({"kind": "pie"}, "kind must be"), ({"max_parts": 0}, "max_parts"), ({"width": 1.5}, "width")],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        of_text().plot(**options)


def test_other_things_are_not_contributions() -> None:
    with pytest.raises(ParameterError, match=r"mercer\.explain\.contributions"):
        ContributionsDisplay.from_contributions([1.0, 2.0])  # type: ignore[arg-type]
