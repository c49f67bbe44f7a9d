"""Reports of fitted models: one page with the verdict, the scores, the errors, the certificate and the pictures.

:func:`mercer.report` makes a :class:`~mercer.reports.document.Report`, a value of plain numbers and text, which turns
itself into a page.
"""
