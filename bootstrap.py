"""Set-up and first steps in one command, with nothing but Python 3.11 or newer.

python3 bootstrap.py demo     installs Mercer beside this file, fits a model to a table of wings, and reports on it
python3 bootstrap.py test     installs what the tests need and runs them
python3 bootstrap.py test --quick       the first case of most tests, in a minute
python3 bootstrap.py test --lowest      the same with the oldest supported version of every dependency
python3.13 bootstrap.py test --newer    the same beside the other environments, for a second Python
python3 bootstrap.py site      builds the site of the documents into build/site/html
"""

import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent


def lowest_versions() -> list[str]:
    """Every lower bound of pyproject.toml as an exact version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    tested = [group for name, group in extras.items() if name not in ("bench", "docs")]
    requirements = project["dependencies"] + [r for group in tested for r in group]
    return sorted({r.replace(">=", "==") for r in requirements if not r.startswith("mercer[")})


def environment(name: str, requirements: list[str], step: str = "") -> Path:
    """The interpreter of a virtual environment that has ``requirements``; made anew only when they change."""
    folder = ROOT / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = folder / "installed.txt"
    stamp_text = "\n".join([*requirements, (ROOT / "pyproject.toml").read_text(encoding="utf-8")])
    if not python.exists():
        print(f"{step}making the virtual environment {name}", flush=True)
        venv.create(folder, with_pip=True)
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != stamp_text:
        print(f"{step}installing packages, once (about a minute)", flush=True)
        # Bytecode of all packages takes as long as their installation, and only a part of it is ever used.
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        subprocess.run([*pip, *requirements], cwd=ROOT, check=True)
        stamp.write_text(stamp_text, encoding="utf-8")
    return python


def demo(arguments: list[str]) -> int:
    """Install, and fit a model to a bundled table, which compiles loops the first time."""
    python = environment(".venv", ["-e", ".[all]"], "[1/2] ")
    command = [str(python), "-m", "mercer", "fit", "sample:airfoil", "--report", "airfoil.html", *arguments]
    print(f"[2/2] {' '.join(command[2:])}", flush=True)
    done = subprocess.run(command, cwd=ROOT).returncode
    if not done:
        print(f"With a file of your own: {python.with_name('mercer').relative_to(ROOT)} fit houses.csv --target price")
    return done


def main(arguments: list[str]) -> int:
    # Without bytecode files, each process that the tests start compiles the package, and each worker the tests.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if arguments[:1] == ["demo"]:
        return demo(arguments[1:])
    if arguments[:1] == ["test"]:
        lowest = "--lowest" in arguments
        rest = [a for a in arguments[1:] if a not in ("--lowest", "--newer")]
        name, versions = (".venv-lowest", lowest_versions()) if lowest else (".venv", [])
        name = ".venv-newer" if "--newer" in arguments else name
        python = environment(name, ["-e", ".[test]", *versions])
        variables = dict(os.environ)
        if name != ".venv":
            # Two versions of numba that share one cache read each other's files.
            variables["NUMBA_CACHE_DIR"] = str(ROOT / name / "numba")
        # Each worker begins with a part of its own, so that they seldom compile the same loops or fit the same models.
        command = [str(python), "-m", "pytest", "-n", "auto", "--dist", "worksteal", "-m", "not slow", *rest]
        return subprocess.run(command, cwd=ROOT, env=variables).returncode
    if arguments[:1] == ["site"]:
        python = environment(".venv", ["-e", ".[docs]"])
        return subprocess.run([str(python), "docs/site/build.py", *arguments[1:]], cwd=ROOT).returncode
    print(__doc__.strip())
    return 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
