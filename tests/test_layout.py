"""Tests stand where the code stands: ``src/mercer/a/b.py`` is tested in ``tests/a/test_b*.py`` or beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

import mercer

SOURCE, TESTS = Path(mercer.__file__).parent, Path(__file__).parent
FOLDERS = sorted({path.parent.relative_to(SOURCE) for path in SOURCE.rglob("*.py")})
# What is tested across the modules of a folder. All else carries the name of one module.
TOPICS = {
    "cli": "auto awkward_tables choice commands full_disk hostile mistakes objects process text tune",
    "estimators": "along_penalty callables defaults fits_on_landmarks hard_margin interrupted_on_landmarks kernel_text "
    "landmarks_beside_exact_fits losses_without_code "
    "many_classes objects observation penalties same_bits series sparse_attributes unreal_rows",
    "explain": "tables",
    "kernels": "centring_and_norms exactness hostile_parameters hostile_values interruption",
    "losses": "penalties",
    "loops": "inlined notice",
    "maps": "exact_maps random_maps",
    "persistence": "tables",
    "reports": "browser",
    "solvers": "naive_gram",
    "solvers/svm": "forms near_copies",
}


@pytest.mark.parametrize("folder", FOLDERS, ids=str)
def test_the_tests_of_a_folder_are_in_the_folder_of_its_name(folder: Path) -> None:
    names = [path.stem.removeprefix("test_") for path in (TESTS / folder).glob("test_*.py")]
    # What learners share is tested with the learners, too.
    assert names or folder.parent == Path("estimators"), f"tests/{folder} has no test"
    if folder == Path():
        # The tests of the whole stand at the top.
        return
    modules = {path.stem.lstrip("_") for path in (SOURCE / folder).glob("*.py")} - {"init__"}
    topics = TOPICS.get(folder.as_posix(), "").split()
    strange = [
        name
        for name in names
        if name not in topics
        and not name.startswith("every_")
        and not any(name.startswith(module) for module in modules)
    ]
    assert not strange, f"tests/{folder} tests no module of that name: {strange}; rename it, or add it to TOPICS"
    assert set(topics) <= set(names)
