"""Options and commands that are gone answer with one line that says what to use instead."""

from collections.abc import Callable

from command_lines import commands

from streamplace.cli._gone import GONE


def test_what_is_gone_names_what_to_use_instead(refusal: Callable) -> None:
    for (command, word), instead in GONE.items():
        assert f"{word} is gone: {instead.rstrip('.')}" in refusal(*command.split(), word), word


def test_what_is_gone_belonged_to_a_command_that_is_there() -> None:
    assert {command for command, _ in GONE} <= {" ".join(words) for words in commands()} | {"flink"}
