"""
Patches of images
=================

Digits shifted by up to three pixels. A kernel on pixels compares what stands at the same place; a kernel on patches
finds the same strokes elsewhere.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from mercer.kernels import RBF, ConvolutionalPatches
from mercer.plotting import GramDisplay

rng = np.random.default_rng(0)
digits = load_digits()
chosen = np.concatenate([np.flatnonzero(digits.target == digit)[:15] for digit in (0, 1, 7)])
images = []
for image in digits.images[chosen] / 16:
    wide = np.zeros((12, 12))
    down, right = rng.integers(0, 4, 2)
    wide[down : down + 8, right : right + 8] = image
    images.append(wide)
labels = digits.target[chosen]

fig, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
pixels = np.array(images).reshape(len(images), -1)
GramDisplay.from_kernel(RBF(4.0), pixels, labels).plot(ax=axes[0])
GramDisplay.from_kernel(ConvolutionalPatches(3, length_scale=1.0).normalized(), images, labels).plot(ax=axes[1])
axes[0].set_title("pixels")
axes[1].set_title("patches of 3 × 3")
plt.show()
