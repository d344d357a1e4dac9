"""Commands as objectives: placeholders and scores."""

from __future__ import annotations

import json
import shlex
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.command_spaces import conditional, filled, space

from recollect import InputError, compile_space
from recollect.tuning.commands import parse_command, parse_score

PYTHON = (sys.executable, "-S", "-c")


# Placeholders


def test_placeholders_become_values_and_doubled_braces_braces() -> None:
    config = {"lr": 1e-05, "name": "a"}
    assert filled(["run", "--lr={lr}", "{name}-{lr}", "{{lr}}", "{{{name}}}"], config) == [
        *("run", "--lr=1e-05", "a-1e-05", "{lr}", "{a}"),
    ]


def test_values_are_written_as_in_json_and_text_as_it_is() -> None:
    config = {"lr": 3, "name": "a", "flag": True, "none": None, "text": "true"}
    searched = space(flag=[True, False], none=[None, 1], text=["true", "x"])
    command = ["run", "{lr}", "{flag}", "{none}", "{text}"]
    assert filled(command, config, searched) == ["run", "3", "true", "null", "true"]


@settings(deadline=None)
@given(st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=20))
def test_any_text_of_a_value_or_of_the_command_stays_one_argument(text: str) -> None:
    searched = compile_space({"name": [text, text + "x"]})
    doubled = text.replace("{", "{{").replace("}", "}}")
    template = parse_command(["run", doubled, "<{name}>"], searched)
    arguments = template.fill({"name": text}, score_file="")
    assert arguments == ["run", text, f"<{text}>"]
    assert shlex.split(shlex.join(arguments)) == arguments


@pytest.mark.parametrize(
    ("command", "without"),
    [
        ("run --lr {lr} --depth {depth} --x", "run --lr 0.5 --x"),
        ("run --depth={depth} --x", "run --x"),
        ("run --verbose --depth={depth}", "run --verbose"),
        ("run --verbose -d{depth}", "run --verbose"),
        ("run -d {depth} {lr}", "run 0.5"),
        ("run --offset -{depth}", "run"),
        ("run --mode=fast {depth}", "run --mode=fast"),
        ("run -1 {depth}", "run -1"),
        ("run - {depth}", "run -"),
        ("run {lr} {depth}", "run 0.5"),
        ("run --both {lr}:{depth} end", "run end"),
        ("run --pair {depth} {depth}", "run"),
        ("run --a{lr} {depth}", "run --a0.5"),
    ],
)
def test_what_needs_an_inactive_hyperparameter_is_left_out_with_its_option(command: str, without: str) -> None:
    searched = conditional()
    assert filled(command.split(), {"kernel": "line", "lr": 0.5}, searched) == without.split()
    whole = command.replace("{lr}", "0.5").replace("{depth}", "7").split()
    assert filled(command.split(), {"kernel": "tree", "lr": 0.5, "depth": 7}, searched) == whole


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ([], "expected a program"),
        (
            ["run", "{rl}"],
            r"'\{rl\}' has the placeholder \{rl\}, but the hyperparameters are lr, name; write \{\{ and \}\}",
        ),
        (["run", "{}"], r"has the placeholder \{\}"),
        (["run", "{ lr }"], r"has the placeholder \{ lr \}"),
        (["run", "a{b"], r"'a\{b' has a single \{; write \{\{ and \}\} for braces"),
        (["run", "a}b"], r"'a\}b' has a single \}"),
        (["{name}", "x"], r"expected the name of a program, without placeholders, got '\{name\}'"),
        (["", "x"], "expected the name of a program, without placeholders, got ''"),
    ],
)
def test_commands_that_make_no_sense_are_refused(command: list[str], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        parse_command(command, space())


def test_hyperparameters_without_a_place_are_known_and_constants_need_none() -> None:
    template = parse_command(["run", "{lr}"], space(fixed=3))
    assert template.unused == ("name",)


def test_names_of_all_kinds_can_be_placed() -> None:
    searched = compile_space({"svm:C": (0.0, 1.0), "a.b c": (0, 3)})
    assert filled(["run", "{svm:C} {a.b c}"], {"svm:C": 0.5, "a.b c": 2}, searched) == ["run", "0.5 2"]


def test_a_hyperparameter_cannot_take_the_name_of_the_score_file() -> None:
    with pytest.raises(InputError, match="cannot be named 'score_file'"):
        parse_command(["run"], space(score_file=[1, 2]))


# Scores


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("0.5", 0.5),
        ("epoch 1\nepoch 2\n-1e-3\n\n  \n", -1e-3),
        ("  +7  ", 7.0),
        (".5", 0.5),
        ("loss: 0.25", 0.25),
        ("val/loss=0.25", 0.25),
        ("Best validation loss = 1E5", 1e5),
        ("loss of epoch 12: 30", 30.0),
        ('{"value": 3}', 3.0),
        ('noise\n{"other": 1, "value": 0.125}\n', 0.125),
        ('{\n  "value": 0.125,\n  "other": [1, 2]\n}\n', 0.125),
        ("10%\r50%\r100%\r0.75", 0.75),
    ],
)
def test_the_score_is_in_the_last_line(text: str, score: float) -> None:
    assert parse_score(text) == score


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "wrote nothing"),
        (" \n\t\n", "wrote nothing"),
        ("0.5\ndone", "expected a number as score, but the last line is 'done'"),
        ("12:30", "the last line is '12:30'"),
        ("time 12:30", "the last line is 'time 12:30'"),
        ("done at 9:05.2", "the last line is 'done at 9:05.2'"),
        ("1_000", "the last line is '1_000'"),
        ("0,5", "the last line is '0,5'"),
        ("loss: 0.5 %", "the last line is 'loss: 0.5 %'"),
        ("INFO:root:0.5", "the last line is 'INFO:root:0.5'"),
        ('{"loss": 1}', r"the last line is '\{\"loss\": 1\}'"),
        ('{"value": "0.5"}', "'value' is \"0.5\""),
        ('{"value": true}', "'value' is true"),
        ('{"value": null}', "'value' is null"),
        ('{"value": [1]}', r"'value' is \[1\]"),
        ('{"value": NaN}', "got nan"),
        ('{"value": 1' + "0" * 400 + "}", "got inf"),
        ("nan", "got nan"),
        ("loss: -inf", "got -inf"),
        ('{"a":' * 100_000, "the last line is"),
        ("x" * 100_000 + ":", "the last line is 'xxx"),
    ],
)
def test_what_is_no_score_is_said_with_the_line(text: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected) as caught:
        parse_score(text)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "text",
    [
        "acc: 0.5\nacc: 0.75\ndone",
        "acc = 0.75\n3.0\n",
        '{"acc": 0.75}\nsaved model.bin (12 MB)',
        '{"inner": {"acc": 3}, "acc": 0.75}',
        "epoch 3: loss=0.1, acc=0.75, time=3",
        'written: {\n "acc": 0.75,\n "loss": 2\n}',
        "my-acc: 2\nacc:0.75; best_acc: 3",
    ],
)
def test_a_key_takes_the_last_line_that_has_it(text: str) -> None:
    assert parse_score(text, "acc") == 0.75


@pytest.mark.parametrize("text", ["0.5", "loss: 0.5", '{"value": 0.5}', "accuracy: 0.5", "x.acc: 0.5", "acc: high"])
def test_a_key_that_nobody_gives_is_missed(text: str) -> None:
    with pytest.raises(InputError, match="expected a number named 'acc' as score"):
        parse_score(text, "acc")


@pytest.mark.parametrize("number", ["1,234.5", "0,25", "-1,5e-3", "1,234,567"])
def test_a_number_with_a_comma_is_refused_rather_than_cut(number: str) -> None:
    line = f"loss: {number}"
    for text, key in ((line, "loss"), (f"epoch 3, {line}, acc=1", "loss"), (line, None)):
        with pytest.raises(InputError, match="comma") as caught:
            parse_score(text, key)
        assert f"{number}'" in str(caught.value)
    assert parse_score("loss=0.5,acc=0.25", "loss") == 0.5


@pytest.mark.parametrize("key", ["a+b", "f1 (macro)", "[x]"])
def test_a_key_is_taken_literally(key: str) -> None:
    assert parse_score(f"{key}: 0.5\nother: 1", key) == 0.5


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_that_python_prints_comes_back(number: float) -> None:
    for text in (repr(number), f"loss: {number!r}", json.dumps({"value": number})):
        assert parse_score(f"first\n{text}\n") == number
    assert parse_score(f"loss={number!r} and more", "loss") == number
