"""Ordinary calls are read without click. Whatever is read so, click reads the same; the rest is click's."""

from __future__ import annotations

import random
import shlex
from typing import Any

import pytest

from meantime.app.main import VERBS
from meantime.surfaces.cli.click_commands import as_click
from meantime.surfaces.cli.plain_argv import read
from meantime.surfaces.cli.verb import Verb
from meantime.surfaces.cli.verb_table import loaded, places

FOUND = {name: loaded(name, where) for name, where in places(VERBS).items()}
DECLARED = {name: found for name, found in FOUND.items() if isinstance(found, Verb)}
HOT = ("run", "ps", "show", "logs", "result", "wait", "cancel", "send", "batch", "events", "threads", "inbox")

# What people and agents type. Each is read without click.
# Verbs whose arguments are hardly ever right by chance.
FEW = ("down", "answer", "fork", "resume", "service", "token")
PLAIN = """
ps
ps -a
ps -aq
ps -an5
ps -n5
ps -n 5 -q
ps --limit=5 --json
ps --limit 0
ps status:failed some words
ps words -a more
ps -- -a
ps a -- b -q
ps --status=failed,lost --thread t -b b1 --search x
ps --search=
ps --search=--json
ps -bq
ps -b=x
ps --no-start
ps -
ps -n5 -n6
run true
run -- true
run -q -- true
run -q sleep 5 -q --json
run -- sh -c 'x'
run -- -- true
run - x
run -c 'make all'
run -qc 'make all'
run -cmake
run -e A=1 -e B= -eC -- env
run --env=A=1 --no-env true
run -t 5m --name x true
run -t0 true
run --timeout=1h30m true
run --thread= true
run --thread t --batch=b --id i --cwd /tmp --retry --pty --stdin-open -w --raw --json true
run -a claude Find out why
run -wn naïve true
logs t_1
logs t_1 -f
logs -fn20 t_1
logs --tail 20 --stream stdout t_1
logs t_1 --stream=both --offset=5 --raw --reconnect 5s --json
wait t_1 t_2
wait -q t_1
wait -b b1 --any -t 5 --json
wait --tell --confirm --thread=x
wait -t0 t_1
cancel t_1 t_2 -w --reason 'because of it'
cancel -b b1 --thread t
show t_1
show --json t_1
result t_1
send t_1 some words
send -n t_1 x
send t_1 --eof
send t_1 -
answer t_1 yes
answer t_1 yes --task
answer --once t_1 yes --task
resume t_1 go on -t 5m
fork t_1 go on -n name
batch b1
events
events t_1 -n 3 --thread x
threads --json
inbox
inbox x -v
open --print
open t_1 --read-only --minutes 60 --print
open --thread conv-1 --json
open t_1 --question
token list
token create the wall screen --days 7
token create ci --write --thread conv-1 --json
token revoke a b
prune --older-than 30d -y --status failed
hook stop
hook stop --host codex
up --wait 5 --set a=b --set c=d
status --json
doctor
audit --json
worker --pool gpu --slots 4
workers --json
"""

# What click has to judge: help, mistakes, and what could be either.
ODD = """
ps -h
ps --help
ps --nonsense
ps --limi 5
ps -z
ps -az
ps --all=1
ps -n
ps --limit
ps --limit=
ps -n x
ps -n -5
ps -n 1_0
ps -n ' 5'
ps -n ٥
ps -n 99999999999999999999999999x
ps -b -q
ps -b --
run -x true
run --timeout soon true
run -t -1 true
run --name
logs
logs t_1 t_2
logs t_1 --stream other
logs t_1 --stream BOTH
open --minutes 0
token
token lend
token create x --days 366
wait t_1 -t 1h30
show
show a b
batch
answer t_1
resume t_1
down
down --stop
up --wait 0
up --wait inf
up --wait x
hook
hook stop --unknown x
hook stop extra
threads x
"""


def words(text: str) -> list[str]:
    return shlex.split(text)


def by_click(verb: Verb, argv: list[str]) -> dict[str, Any]:
    return as_click(verb).make_context(verb.name, list(argv)).params


@pytest.mark.parametrize("call", PLAIN.strip().splitlines())
def test_an_ordinary_call_is_read_as_click_reads_it(call: str):
    name, *argv = words(call)
    found = read(DECLARED[name], argv)
    assert found is not None
    assert found == by_click(DECLARED[name], argv)
    assert {key: type(value) for key, value in found.items()} == {
        key: type(value) for key, value in by_click(DECLARED[name], argv).items()
    }


@pytest.mark.parametrize("call", ODD.strip().splitlines())
def test_everything_else_is_left_to_click(call: str):
    name, *argv = words(call)
    assert read(DECLARED[name], argv) is None


def test_words_that_are_not_text_are_kept_as_they_came():
    argv = ["--name=\udcff", "-n\ud800", "\udcfe"]
    assert read(DECLARED["run"], argv) == by_click(DECLARED["run"], argv)


@pytest.mark.parametrize("name", DECLARED)
def test_whatever_is_read_at_random_is_as_click_reads_it(name: str):
    """Options, values and words in any order. What click refuses is never taken for ordinary."""
    verb = DECLARED[name]
    chance = random.Random(name)
    flags = [flag for one in verb.parameters for flag in one.flags]
    short = "".join(flag[1] for flag in flags if len(flag) == 2)
    plain = 0
    for _ in range(400):
        argv = [_word(chance, flags, short) for _ in range(chance.randrange(6))]
        found = read(verb, argv)
        if found is not None:
            plain += 1
            assert found == by_click(verb, argv), argv
    assert plain > 20 or name in FEW, "hardly anything was compared"


def _word(chance: random.Random, flags: list[str], short: str) -> str:
    value = chance.choice(
        ["", "5", "0", "x", "5m", "-", "--", "-5", "both", "a=b", "t_1", " ", "é", "1e3", "x y"]
    )
    flag = chance.choice(flags)
    return chance.choice(
        [value, value, flag, flag, f"{flag}={value}", f"{flag}{value}", "-" + chance.choice(short or "q") * 2,
         "-" + "".join(chance.choices(short or "q", k=2)) + value, flag[:-1], value + value]
    )  # fmt: skip


@pytest.mark.parametrize("name", HOT)
def test_a_verb_that_is_called_often_is_declared(name: str):
    assert name in DECLARED


@pytest.mark.parametrize("name", DECLARED)
def test_a_declaration_and_click_agree_on_names(name: str):
    verb = DECLARED[name]
    command = as_click(verb)
    assert command.name == name
    assert [one.dest for one in verb.parameters] == [param.name for param in command.params]
