"""A sample of short messages, made up from a seed."""

from __future__ import annotations

import numpy as np

_OPENINGS = {
    "offer": ["win {thing} now", "last chance: {thing} for free", "your {thing} is waiting", "claim {thing} today"],
    "parcel": ["your parcel is on its way", "we missed you at {hour}", "it is at the {place}", "delivery delayed"],
    "private": ["see you at {hour}", "I am at the {place}", "can you bring {thing}?", "running late, sorry"],
}
_ENDINGS = {
    "offer": ["call 0800 {digits}", "reply WIN to {digits}", "click here!!!", "offer ends at {hour}"],
    "parcel": ["tracking number {digits}", "courier calls at {hour}", "code {digits}", "pick it up at the {place}"],
    "private": ["love, Ada", "ok?", "call me", "back at {hour}"],
}
_THINGS = ["a phone", "cash", "two tickets", "a holiday", "the keys", "some bread"]
_PLACES = ["station", "office", "school", "library", "corner shop"]
# Hours at which messages of a kind are sent, on average.
_HOURS = {"offer": 20, "parcel": 11, "private": 16}
_ROWS = 240
# Share of the openings, and of the endings, that are of any kind.
_BORROWED = 0.3


def messages() -> tuple[list[str], np.ndarray, np.ndarray]:
    """Texts with slips of the pen, the hours at which they were sent, and what kinds they are, (240,) each.

    >>> texts, hours, kinds = messages()
    >>> texts[2], float(hours[2]), str(kinds[2])
    ('can you bring a pohne?, offer ends at 9:00', 13.4, 'private')
    """
    generator = np.random.default_rng(0)
    kinds = np.array(sorted(_OPENINGS))[np.arange(_ROWS) % len(_OPENINGS)]
    texts = [_message(kind, generator) for kind in kinds]
    hours = np.clip(np.array([_HOURS[kind] for kind in kinds]) + generator.normal(0.0, 3.0, _ROWS), 0.0, 23.9)
    return texts, hours.round(1), kinds


def _message(kind: str, generator: np.random.Generator) -> str:
    def one_of(choices: list[str]) -> str:
        return choices[generator.integers(len(choices))]

    def own_or_borrowed() -> str:
        return one_of(sorted(_OPENINGS)) if generator.random() < _BORROWED else kind

    text = f"{one_of(_OPENINGS[own_or_borrowed()])}, {one_of(_ENDINGS[own_or_borrowed()])}".format(
        thing=one_of(_THINGS),
        place=one_of(_PLACES),
        hour=f"{generator.integers(8, 22)}:00",
        digits=generator.integers(10_000, 99_999),
    )
    # Two neighbouring letters change places in some messages.
    for _ in range(generator.integers(3)):
        at = generator.integers(len(text) - 1)
        text = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    return text
