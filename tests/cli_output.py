"""What a command has printed on standard error: lines about the work that goes on, and messages."""

from __future__ import annotations

_WORK = ("Reading ", "Predicting ")


def messages(err: str) -> list[str]:
    """The lines of notes and errors, without those that only say what is read or predicted."""
    return [line for line in err.splitlines() if not line.startswith(_WORK)]


def refusal(err: str) -> str:
    """The one message, a short paragraph, of a command that ends with an error."""
    (message,) = messages(err)
    assert message.startswith("mercer: ") and not message.startswith("mercer: internal error")
    assert "Traceback" not in err and len(message) < 2000
    return message
