"""
Parse trees
===========

A subset tree kernel counts the fragments that two parse trees share, so sentences of one form are similar whatever
their words.
"""

from matplotlib import pyplot as plt

from mercer.kernels import SubsetTree
from mercer.plotting import GramDisplay

subjects, verbs = ["(NP I)", "(NP we)", "(NP (D the) (N cat))", "(NP (D a) (N dog))"], ["sleep", "run", "sing"]
short = [f"(S {subject} (VP {verb}))" for subject in subjects for verb in verbs]
long = [f"(S {subject} (VP (V {verb}) (PP (P at) (NP night))))" for subject in subjects for verb in verbs]
forms = ["intransitive"] * len(short) + ["with a place"] * len(long)
GramDisplay.from_kernel(SubsetTree(decay=0.5).normalized(), short + long, forms).plot()
plt.show()
