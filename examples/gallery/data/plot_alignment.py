"""
Two series, aligned
===================

The same wave at two speeds. Dynamic time warping finds the alignment of least cost; alignment kernels sum over all
alignments.
"""

import numpy as np

from mercer.plotting import AlignmentDisplay

time = np.linspace(0, 1, 70)
AlignmentDisplay.from_series(np.sin(9 * time), np.sin(9 * time**1.6)).plot()
