"""Text of strangers steers no terminal and looks like no line of ours."""

import pytest

from paribus.cli import main
from paribus.conditions import UsageError, harmless, one_line


def test_what_steers_a_terminal_or_reorders_text_is_replaced_and_the_rest_stays():
    assert harmless("\x1b[2Jmüde\u202e 1\t2\n") == "\ufffd[2Jmüde\ufffd 1\t2\n"
    assert one_line("a\nfiles holds\r\nb") == "a files holds\ufffd b"


def test_an_error_that_quotes_a_stranger_steers_no_terminal(monkeypatch, capsys):
    def fail(*_: object, **__: object) -> None:
        raise UsageError("it is called \x1b[31mred")

    monkeypatch.setattr("paribus.cli.app.main", fail)
    with pytest.raises(SystemExit) as ended:
        main(["check"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "paribus: it is called \ufffd[31mred\n"
