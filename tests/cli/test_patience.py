"""A command that takes long says what it does; a quick one says nothing."""

import time

from dprepro.cli.patience import Patience


def test_a_quick_command_says_nothing(capsys):
    with Patience(60) as patience:
        patience.step("reading")
    assert capsys.readouterr().err == ""


def test_a_slow_command_says_what_it_does_and_what_comes_next(capsys):
    with Patience(0.05) as patience:
        patience.step("reading 3 journals")
        time.sleep(0.3)
        patience.step("drawing figures")
    assert capsys.readouterr().err == "reading 3 journals ...\ndrawing figures ...\n"
