"""Gaussian processes: the evidence and its gradient, the search for hyper-parameters, predictive distributions."""
