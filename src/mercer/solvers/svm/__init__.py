r"""Support vector machines: the dual problem, its step, and who calls it.

Every machine states a :class:`mercer.solvers.svm.box_qp.BoxQP`:

.. math:: \max_\beta\; c^\top \beta - \varepsilon \lVert \beta \rVert_1 - \tfrac12 \beta^\top K \beta
          \quad\text{s.t.}\quad l \le \beta \le u,\; \sum_{i \in g} \beta_i = s_g .

===========================  ======================================================================================
symbol                       meaning
===========================  ======================================================================================
:math:`K`                    the Gram matrix (``gram``), lazy or stored
:math:`\beta_i`              the weight of row i; for classes :math:`y_i \alpha_i`
:math:`c`                    the linear term (``linear``): labels or targets
:math:`\varepsilon`          half the width of the tube (``tube``)
:math:`F = c - K \beta`      the gradient, which every step updates
:math:`b`                    the multiplier of a sum (``offset``): :math:`F_i` of every free row
===========================  ======================================================================================

The step (``smo_steps`` in ``loops/smo.py``) takes the row i with the largest :math:`F_i` that may rise, the j that
gains most with it (second order), and moves :math:`t = (F_i - F_j) / (K_{ii} + K_{jj} - 2 K_{ij})` from j to i, or as
far as the box allows; then :math:`F \leftarrow F - t (K_i - K_j)`. What a problem adds is data: the box, the tube, the
groups, the rows of K that are there.

==========================  =======================================================================================
module                      what it does with the step
==========================  =======================================================================================
``smo.py``                  chooses the level and the precision, and certifies the answer
``active_set.py``           rows that may still move, for more than 2048
``working_set.py``          at most 1536 rows at a time
``whole_matrix.py``         one block; second-order methods where steps are slow
``shrinking.py``            the same on parts of a stored matrix
``block.py``                calls the step, by portions
``pairwise.py``             pairs of classes: ``tiny_pairs.py``, ``joined_pair.py``, ``picked_pair.py``
==========================  =======================================================================================
"""
