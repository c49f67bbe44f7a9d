"""What to do next, added to what scikit-learn's checks of the input say: here for the estimators."""

from mercer.data.advice import advised as advised
