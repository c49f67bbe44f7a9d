"""Parts of the estimators that choose everything for a table themselves."""
