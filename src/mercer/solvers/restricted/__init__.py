"""Functions restricted to the span of few rows, the landmarks: problems, passes over the rows, and solvers."""
