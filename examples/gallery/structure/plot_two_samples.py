"""
Do two samples come from one distribution?
==========================================

Both samples have the same means and variances, so tests of these see nothing. The maximum mean discrepancy compares the
means in feature space; permutations of the rows tell how large it is by chance.
"""

import numpy as np
from matplotlib import pyplot as plt

from mercer import comparison

rng = np.random.default_rng(0)
normal = rng.normal(size=(300, 1))
two_peaks = 0.9 * rng.choice([-1.0, 1.0], size=(300, 1)) + np.sqrt(0.19) * rng.normal(size=(300, 1))
test = comparison.mmd(normal, two_peaks, gamma=1.0, random_state=0)

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.hist([normal.ravel(), two_peaks.ravel()], bins=20, label=["normal", "two peaks"])
left.legend()
left.set_title("the samples")
right.hist(test.null, bins=30, color="grey", label="permutations")
right.axvline(test.statistic, color="black", label=f"observed, p = {test.p_value:.3g}")
right.legend()
right.set_title("squared discrepancy")
plt.show()
