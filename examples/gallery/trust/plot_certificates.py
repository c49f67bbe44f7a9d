"""
What a tolerance buys
=====================

The certificate of each fit has a primal and a dual objective. The optimum lies between them, so their gap bounds the
error of the objective, whatever the solver did.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import make_moons

from mercer import SVC

# Pairs of classes with up to 512 rows are solved as exactly as numbers allow, whatever the tolerance.
X, y = make_moons(1000, noise=0.3, random_state=0)
tolerances = np.logspace(0, -6, 7)
certificates = [SVC(C=10.0, gamma=1.0, tol=tol).fit(X, y).certificate_ for tol in tolerances]
best = max(certificate.dual for certificate in certificates)

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.loglog(tolerances, [max(c.primal - c.dual, 1e-12) for c in certificates], "o-", label="gap")
left.loglog(tolerances, [max(c.primal - best, 1e-12) for c in certificates], "s--", label="true error of the primal")
left.set(xlabel="tol", ylabel="objective")
left.invert_xaxis()
left.legend()
right.semilogx(tolerances, [c.iterations for c in certificates], "o-")
right.set(xlabel="tol", ylabel="iterations")
right.invert_xaxis()
plt.show()
