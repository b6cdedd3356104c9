"""Refusals: messages of one line that begin with what is refused."""

import pytest

from streamplace.errors import StreamplaceError


def refusal_of(name, read, *given, kind=StreamplaceError, **named):
    """What a call is refused with, behind the name of what it reads; a line number may follow."""
    with pytest.raises(kind) as caught:
        read(*given, **named)
    message = str(caught.value)
    assert message.startswith(f"{name}:")
    assert message.isprintable()
    return message.removeprefix(f"{name}:").removeprefix(" ")
