"""Each command and each option is in the documentation, in the section of its command."""

import re
from pathlib import Path

import pytest
import typer

from altnorm.cli._app import app

PAGE = Path(__file__).parents[2] / "docs" / "cli.rst"
COMMANDS = typer.main.get_command(app).commands


def sections():
    """Text of each section by its heading."""
    parts = re.split(r"^(.+)\n[-=]{4,}\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def options(command):
    names = [name for parameter in command.params for name in getattr(parameter, "opts", [])]
    return sorted(name for name in names if name.startswith("--") and name != "--help")


def test_commands_are_the_documented_ones():
    documented = {name.split()[1] for name in sections() if name.startswith("altnorm ")}
    assert documented == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_option_is_in_its_section(name):
    section = sections()[f"altnorm {name}"]
    documented = sorted(set(re.findall(r"``(--[a-z-]+)", section)))
    assert documented == options(COMMANDS[name])


@pytest.mark.parametrize("name", COMMANDS)
def test_each_example_is_in_its_section(name):
    assert COMMANDS[name].epilog.removeprefix("Example: ") in sections()[f"altnorm {name}"]


def test_shared_options_are_explained_once():
    shared = sections()["Options that several commands share"]
    explained = set(re.findall(r"^``(--[a-z-]+)", shared, flags=re.MULTILINE))
    used = [option for command in COMMANDS.values() for option in options(command)]
    assert {option for option in used if used.count(option) > 1} <= explained


def test_options_of_the_program_itself():
    text = PAGE.read_text(encoding="utf-8")
    for option in options(typer.main.get_command(app)):
        assert f"``{option}``" in text
