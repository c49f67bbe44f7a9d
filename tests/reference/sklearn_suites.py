"""Runs scikit-learn's own tests, from the installed scikit-learn, on Mercer's estimators.

python tests/reference/sklearn_suites.py            prints counts, failures and the table of differences
python tests/reference/sklearn_suites.py --write    also writes that table to docs/migration/scikit-learn.md
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
if str(HERE.parent) not in sys.path:
    # Run as a script.
    sys.path.insert(0, str(HERE.parent))

from reference.sklearn_differences import DIFFERENCES, LEAST, Difference  # noqa: E402
from reference.sklearn_swap import REPORT  # noqa: E402

DOCUMENT = ROOT / "docs" / "migration" / "scikit-learn.md"
BEGIN, END = "<!-- differences: begin -->", "<!-- differences: end -->"
KINDS = {"behavior": "yes", "private": "no, private attribute", "wording": "no, wording"}


@dataclass(frozen=True)
class Outcome:
    """What became of the tests of one module: names with parameters, and the messages of failures.

    Tests that scikit-learn skips or expects to fail are left out.
    """

    module: str
    passed: tuple[str, ...]
    failed: dict[str, str]

    @property
    def unlisted(self) -> dict[str, str]:
        """Failures that no difference explains, with their messages."""
        return {test: text for test, text in self.failed.items() if not self._explanations(test)}

    @property
    def counted(self) -> int:
        """The number of tests without those of private attributes and wording that fail."""
        return len(self.passed) + sum(self._counts(test) for test in self.failed)

    @property
    def share(self) -> float:
        """The share of the counted tests that pass."""
        return len(self.passed) / self.counted

    @property
    def stale(self) -> list[Difference]:
        """Differences of the list of which every test passes, or that name no test."""
        mine = (d for d in DIFFERENCES if d.module == self.module)
        return [d for d in mine if not any(d.matches(self.module, test) for test in self.failed)]

    def _explanations(self, test: str) -> list[Difference]:
        return [d for d in DIFFERENCES if d.matches(self.module, test)]

    def _counts(self, test: str) -> bool:
        explanations = self._explanations(test)
        return not explanations or any(d.counts for d in explanations)


def run(module: str) -> Outcome:
    """Run one test module of scikit-learn in a process of its own, with the classes replaced.

    Raises
    ------
    RuntimeError
        If pytest did not run, with what it printed.
    """
    with tempfile.TemporaryDirectory() as folder:
        settings, report = Path(folder, "pytest.ini"), Path(folder, "report.json")
        settings.write_text("[pytest]\n", encoding="utf-8")
        path = os.pathsep.join([str(ROOT / "src"), str(HERE.parent), os.environ.get("PYTHONPATH", "")])
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-c",
            str(settings),
            "--rootdir",
            folder,
            "-p",
            "reference.sklearn_swap",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "-q",
            "--pyargs",
            module,
        ]
        environment = {**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": "", REPORT: str(report)}
        process = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
        # 0: all passed, 1: some failed; anything else is no run.
        if process.returncode not in (0, 1) or not report.exists():
            raise RuntimeError(
                f"pytest ended with {process.returncode} on {module}:\n{process.stdout}\n{process.stderr}"
            )
        results = json.loads(report.read_text(encoding="utf-8"))
    return Outcome(module, tuple(results["passed"]), results["failed"])


def table(differences: Iterable[Difference] = DIFFERENCES) -> str:
    """The differences as a table of Markdown."""
    lines = ["| module | test | counted | what differs, and why |", "|---|---|---|---|"]
    for d in differences:
        module = d.module.removeprefix("sklearn.").replace(".tests", "")
        lines.append(f"| `{module}` | `{d.name}` | {KINDS[d.kind]} | {d.reason} |")
    return "\n".join(lines)


def documented() -> str:
    """The table that stands in the document."""
    return DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip()


def _write() -> None:
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    DOCUMENT.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Run all modules and print what came out; 1 if a test fails that is not listed, or too few pass."""
    outcomes = [run(module) for module in LEAST]
    for outcome in outcomes:
        print(
            f"{outcome.module}: {len(outcome.passed)} of {len(outcome.passed) + len(outcome.failed)} pass; of "
            f"{outcome.counted} counted tests {outcome.share:.1%}, and {LEAST[outcome.module]:.0%} must"
        )
    for outcome in outcomes:
        for test, message in outcome.unlisted.items():
            print(f"not listed: {outcome.module}::{test}\n    {message[:300]}")
        for difference in outcome.stale:
            print(f"listed, but passes: {difference.module}::{difference.name}")
    print(table())
    if "--write" in arguments:
        _write()
    return int(any(outcome.unlisted or outcome.share < LEAST[outcome.module] for outcome in outcomes))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
