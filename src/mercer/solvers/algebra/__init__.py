"""What several solvers do with matrices: conjugate gradients, Lanczos, matrices stored with their factors."""
