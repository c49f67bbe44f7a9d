"""
The letters that decide
=======================

A string kernel counts features, so the decision value of a text is a sum over its substrings. Each letter gets its
share of the substrings that contain it.
"""

from mercer import SVC
from mercer.kernels import BlendedSpectrum
from mercer.plotting import ContributionsDisplay

spam = [
    "win a free prize now, call this number",
    "free entry: text WIN to claim cash",
    "claim your prize today, it is free",
]
mail = ["see you at lunch, i am at home now", "call me when you are home", "thank you for lunch today"]
model = SVC(kernel=BlendedSpectrum(4).normalized()).fit(spam + mail, ["spam"] * 3 + ["mail"] * 3)
row = "are you free for lunch today? claim the prize at home"
ContributionsDisplay.from_estimator(model, row, output="spam").plot()
