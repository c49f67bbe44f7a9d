"""Read plain values from a model file without loading the classes that would rebuild its object."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mercer._errors import ModelFileError
from mercer.persistence import container
from mercer.persistence.container import malformed

# Limits on the values returned: far more than a report has, far less than memory holds.
_LARGEST = 1_000_000
_DEEPEST = 50


def look(path: Path, *paths: Sequence[str]) -> tuple[str, list[Any]]:
    """Return the class name of the object in a model file, and some of its plain values (None where there is none).

    Parameters
    ----------
    path : Path
    *paths : sequence of str
        Names of attributes, each an attribute of the one before: ``("encoder_", "schema_", "kinds")``.

    Raises
    ------
    ModelFileError
        If the file is not a model file, was altered, is of a newer version, or has something other than plain values
        at a path.
    """
    try:
        texts = container.read_texts(path)
        container.check_format(texts)
        table = container.parse_json(texts.get("model", ""), "table of objects")
        nodes = table.get("nodes") if isinstance(table, dict) else None
        if not isinstance(nodes, list) or not all(isinstance(node, dict) for node in nodes):
            malformed("its table of objects is not a list of them")
        plain = _Plain(nodes)
        return plain.name(table.get("root")), [plain.at(table.get("root"), names) for names in paths]
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error


class _Plain:
    """Reads values from the table; shared values count once for each reference."""

    def __init__(self, nodes: list[dict[str, Any]]) -> None:
        self._nodes = nodes
        self._left = _LARGEST

    def name(self, value: Any) -> str:
        node = self._node(value)
        return str(node.get("class", node.get("kind"))).rpartition(".")[2][:60]

    def at(self, value: Any, names: Sequence[str]) -> Any:
        for name in names:
            fields = self._node(value).get("fields")
            if not isinstance(fields, dict) or name not in fields:
                return None
            value = fields[name]
        return self._value(value, 0)

    def _node(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, list) or len(value) != 1 or type(value[0]) is not int:
            return {}
        if not 0 <= value[0] < len(self._nodes):
            malformed(f"a reference points to the row {value[0]} of {len(self._nodes)}")
        return self._nodes[value[0]]

    def _value(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            malformed("its report is too large")
        if not isinstance(value, (list, dict)):
            return value
        node = self._node(value)
        kind, items = node.get("kind"), node.get("items")
        if kind == "float" and node.get("value") in ("nan", "inf", "-inf"):
            return float(node["value"])
        if kind in ("list", "tuple") and isinstance(items, list):
            return [self._value(item, depth + 1) for item in items]
        if kind == "dict" and isinstance(items, list) and all(isinstance(i, list) and len(i) == 2 for i in items):
            pairs = [[self._value(part, depth + 1) for part in item] for item in items]
            if all(isinstance(key, (str, int, float, bool)) for key, _ in pairs):
                return dict(pairs)
        malformed("its report holds something other than plain values")
