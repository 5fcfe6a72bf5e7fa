"""ps, show, result, batch, threads, inbox: what a person sees, and what scripts read."""

from __future__ import annotations

import json
import re
from functools import partial

import pytest
from tests.waiting import until

from .person import Person

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def works(person: Person) -> dict[str, str]:
    """One of each ending, and one that goes on."""
    start = partial(person.start, "--thread", "cli")  # a conversation by name: it is told
    ids = {
        "good": start("-n", "good one", "-b", "mixed", "-c", "echo fine; echo and more"),
        "bad": start("-n", "bad one", "-b", "mixed", "-c", "echo before; exit 3"),
        "evil": start("-n", "evil \x1b[31m\u202etitle\n", "-b", "mixed", "--", "true"),
        "long": start("-n", "long " + "one " * 60, "-b", "mixed", "--", "sleep", "600"),
        "gone": start("-n", "gone", "--thread", "other", "--", "sleep", "600"),
        "zz-a1": start("--id", "zz-a1", "-n", "first", "--", "true"),
        "zz-a2": start("--id", "zz-a2", "-n", "second", "--", "true"),
    }
    person("cancel", "-w", ids["gone"])
    person("wait", "-q", *[ids[name] for name in ids if name != "long"])
    return ids


@pytest.mark.core("the one look at a daemon")
@pytest.mark.behaviour("H17")
def test_ps_shows_what_is_active(person: Person, works: dict[str, str]):
    head, *rows, foot = person("ps").out.splitlines()
    assert head.split() == ["ID", "STATUS", "TIME", "TASK", "NOW"]
    assert len(rows) == 1
    assert re.match(rf"{works['long'][2:10]}  ● (running|silent)", rows[0])
    assert re.fullmatch(r"1 running · [0-6] done today", foot)  # midnight may come in between


def test_ps_all_has_active_ones_first(person: Person, works: dict[str, str]):
    _, *rows, foot = person("ps", "-a").out.splitlines()
    assert len(rows) == 7
    assert re.search("● (running|silent)", rows[0])
    assert sum("✓ completed" in row for row in rows) == 4
    assert any("✗ failed" in row and "exit 3 · " in row for row in rows)
    assert foot == "1 running · 4 completed · 1 failed · 1 cancelled"


def test_no_title_moves_the_cursor(person: Person, works: dict[str, str]):
    assert "evil title\n" in person("ps", "-a").out
    shown = person("show", works["evil"]).out
    assert "\x1b" not in shown
    assert "\u202e" not in shown


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["status:failed"], ["bad"]),
        (["--status", "failed,cancelled"], ["bad", "gone"]),
        (["thread:other"], ["gone"]),
        (["-b", "mixed", "--status", "ended"], ["good", "bad", "evil"]),
        (["batch:mixed", "status:completed"], ["good", "evil"]),
        (["--search", "GOOD"], ["good"]),
        (["bad", "one"], ["bad"]),
        (["--status", "lost"], []),
    ],
)
def test_ps_finds_tasks_by_words_and_filters(
    person: Person, works: dict[str, str], arguments: list[str], names: list[str]
):
    found = person.json("ps", *arguments)
    assert {task["id"] for task in found["tasks"]} == {works[name] for name in names}
    quiet = person("ps", "-q", *arguments).out.split()
    assert sorted(quiet) == sorted(works[name] for name in names)


def test_ps_says_when_there_is_more(person: Person, works: dict[str, str]):
    found = person.json("ps", "-a", "-n", "2")
    assert (len(found["tasks"]), found["more"]) == (2, True)
    foot = person("ps", "-a", "-n", "2").out.splitlines()[-1]
    assert foot == "1 running · 1 completed · there are more: -n 0 shows all"
    assert person("ps", "-a", "-n", "7").out.splitlines()[-1].endswith("1 cancelled")
    assert person.json("ps", "-a", "-n", "0")["more"] is False


def test_ps_fits_the_terminal(person: Person, works: dict[str, str]):
    terminal = person.terminal("ps", "-a", NO_COLOR="1")
    assert terminal.end() == 0
    assert "\x1b" not in terminal.screen
    lines = terminal.screen.splitlines()
    assert len(lines) == 9
    assert all(len(line) <= 80 for line in lines)
    assert any("…" in line for line in lines)
    coloured = person.terminal("ps", "-a")
    coloured.end()
    assert "\x1b[31m✗ failed\x1b[0m" in coloured.screen


def test_an_unknown_status_is_usage(person: Person):
    done = person("ps", "--status", "broken")
    assert done.code == 2
    assert "Use one of: queued, running" in done.err


def test_show_names_every_fact_of_a_task(person: Person, works: dict[str, str]):
    shown = person("show", works["bad"][2:9]).out
    facts = dict(line.split("  ", 1) for line in shown.splitlines() if not line.startswith(" "))
    facts = {name.strip(): value.strip() for name, value in facts.items()}
    assert facts["id"] == works["bad"]
    assert facts["status"] == "✗ failed"
    assert facts["exit code"] == "3"
    assert facts["command"] == "echo before; exit 3"
    assert facts["batch"] == "mixed"
    assert person.json("show", works["bad"])["exitCode"] == 3
    assert person.json("show", works["good"])["exitCode"] == 0


def test_an_ambiguous_prefix_lists_its_candidates(person: Person, works: dict[str, str]):
    for verb in ("show", "cancel", "logs", "result", "wait"):
        done = person(verb, "zz-a")
        assert done.code == 3, verb
        assert done.out == ""
        first, *candidates = done.err.splitlines()
        assert first == 'meantime: "zz-a" matches 2 tasks, be more specific:'
        assert sorted(candidates) == ["  zz-a1  ✓ completed  first", "  zz-a2  ✓ completed  second"]


def test_a_name_that_is_also_the_beginning_of_an_id_means_neither(loner: Person):
    nightly = loner.start("--id", "build-1", "-n", "nightly", "--", "sleep", "600")
    build = loner.start("-n", "build", "--", "sleep", "600")
    for verb in ("cancel", "show"):
        done = loner(verb, "build")
        assert (done.code, done.out) == (3, "")
        assert done.err.startswith('meantime: "build" matches 2 tasks, be more specific:\n')
        assert sorted(line.split()[-1] for line in done.err.splitlines()[1:]) == ["build", "nightly"]
    assert loner.json("show", "build-1")["id"] == nightly
    assert loner.json("show", "build-")["id"] == nightly
    loner.start("--id", "other", "-n", "build-1", "--", "true")
    assert loner.json("show", "build-1")["id"] == nightly  # a whole id wins
    assert loner("cancel", "-w", build).code == 0
    assert loner.json("show", build)["state"] == "cancelled"


@pytest.mark.parametrize("ref", ["nothing", "../x", "a b", "%2e", "é", "\udcff"])
def test_what_is_not_there_is_3(person: Person, ref: str):
    done = person("show", ref)
    assert done.code == 3
    assert done.err.endswith("  `meantime ps -a` lists them.\n")


def test_result_and_its_codes(person: Person, works: dict[str, str]):
    assert person("result", works["good"]) == (0, "fine\nand more\n", "")
    assert person.json("result", works["good"]) == {"result": "fine\nand more\n"}
    for name, code in (("bad", 6), ("gone", 7), ("long", 8)):
        done = person("result", works[name])
        assert (done.code, done.out) == (code, ""), name
        assert len(done.err.splitlines()) == 2
        assert done.err.startswith("meantime: ")


def test_batch_counts_what_has_ended_and_failed(person: Person, works: dict[str, str]):
    first, *rest = person("batch", "mixed").out.splitlines()
    assert first == "mixed  ▓▓▓▓▓▓░░ 3/4  ✗1"
    assert len(rest) == 5
    assert person.json("batch", "mixed") == {"id": "mixed", "ended": 3, "total": 4, "failed": 1, "active": 1}
    assert person("batch", "never").code == 3


def test_a_batch_describes_its_tasks_as_ps_does(person: Person, works: dict[str, str]):
    listed = {line.split()[0]: line.split() for line in person("ps", "-a").out.splitlines()}
    failed = [line.split() for line in person("batch", "mixed").out.splitlines() if "failed" in line]
    assert [line[-4:] for line in failed] == [["exit", "3", "·", "before"]]
    assert failed == [listed[line[0]] for line in failed]


def test_show_says_what_a_queued_task_waits_for_and_who_is_told(loner: Person):
    (loner.folder / "config.toml").write_text("[limits]\nper_kind = { shell = 1 }\n")
    told = loner.start("--thread", "conv", "-c", "exec sleep 600")
    first, second = (loner.start("-c", "exec sleep 600") for _ in range(2))
    [listed] = [line for line in loner("ps").out.splitlines() if second[2:10] in line]
    shown = loner("show", second).out

    assert "waits for a slot · 1 of 1 commands" in listed
    assert "now      waits for a slot · 1 of 1 commands" in shown
    assert "told     nobody" in shown
    assert "told" not in loner("show", told).out
    assert [loner.json("show", id)["row"]["notify"] for id in (told, first)] == [True, False]
    loner("cancel", told, first, second)


def test_a_qualifier_that_begins_with_a_dash_is_explained(person: Person):
    done = person("ps", "-status:failed")
    assert done.code == 2
    assert "without the dash: `meantime ps status:failed`" in done.err
    assert "`meantime ps -- -status:failed`" in done.err
    assert person("ps", "-q", "--", "-status:active,ended") == (0, "", "")


def test_threads_and_inbox(person: Person, works: dict[str, str]):
    head, *rows = person("threads").out.splitlines()
    assert head.split() == ["THREAD", "ACTIVE", "UNREAD", "PARKED", "LAST"]
    assert {row.split()[0]: row.split()[1:3] for row in rows} == {"cli": ["1", "5"], "other": ["0", "1"]}
    before = person.json("inbox")["notices"]
    assert [notice["taskId"] for notice in before].count(works["good"]) == 1
    lines = person("inbox").out.splitlines()
    assert [line.split(".")[0] for line in lines] == ["1", "2", "3", "4", "5"]
    assert person.json("inbox")["notices"] == before  # looking settled nothing
    assert person("inbox", "nobody").out == "nothing unread in nobody\n"
    assert "gone" in person("inbox", "other", "-v").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_completion_script(person: Person, shell: str):
    done = person("completion", shell)
    assert done.code == 0
    assert "_MEANTIME_COMPLETE" in done.out


def test_completion_knows_verbs_and_live_ids(person: Person, works: dict[str, str]):
    def complete(*words: str) -> list[str]:
        environ = {"_MEANTIME_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(["meantime", *words]),
                   "COMP_CWORD": str(len(words))}  # fmt: skip
        return [line.partition(",")[2] for line in person(environ=environ).out.splitlines()]

    assert complete("ca") == ["cancel"]
    assert complete("show", works["long"][2:5]) == [works["long"][2:10]]
    assert complete("show", "t_" + works["long"][2:5]) == [works["long"][:10]]


def test_answer_and_resume_refuse_what_cannot_be(person: Person, works: dict[str, str]):
    cases = ((["answer", works["long"], "yes"], 1), (["resume", works["good"], "go", "on"], 2))
    for arguments, code in cases:
        done = person(*arguments)
        assert done.code == code, done
        assert done.err.startswith("meantime: ")


def test_json_is_one_object_a_line(person: Person, works: dict[str, str]):
    for arguments in (["ps"], ["threads"], ["inbox"], ["show", works["good"]], ["logs", works["good"]]):
        done = person(*arguments, "--json")
        assert done.out.count("\n") == 1
        json.loads(done.out)


def test_a_name_that_no_other_task_has_is_as_good_as_an_id(
    person: Person, works: dict[str, str], loner: Person
):
    assert person.json("show", "good one")["id"] == works["good"]
    assert person("wait", "-q", "good one", "first").code == 0
    assert person("show", "good").code == 3  # a part of a name is not a name
    for _ in range(2):
        loner("wait", "-q", loner.start("-n", "twins", "--", "true"))
    done = loner("logs", "twins")
    assert (done.code, '"twins" matches 2 tasks' in done.err) == (3, True)


def test_of_several_with_a_name_the_active_one_is_meant(loner: Person):
    """It was run again: what it was before is not answered, shown or stopped any more."""
    loner("wait", "-q", loner.start("-n", "again", "--", "true"))
    first = loner.start("-n", "again", "--", "sleep", "600")
    assert loner.json("show", "again")["id"] == first
    second = loner.start("-n", "again", "--", "sleep", "600")
    done = loner("cancel", "again")
    assert (done.code, '"again" matches 3 tasks' in done.err) == (3, True)
    assert loner("cancel", "-w", second).code == 0
    assert loner("cancel", "-w", "again").code == 0
    assert loner.json("show", first)["state"] == "cancelled"


def test_ps_searches_as_the_page_does_and_names_the_same_mistakes(loner: Person):
    """`build:prod` may be a name: then it is quoted."""
    done = loner("ps", "stats:failed")
    assert (done.code, done.out) == (2, "")
    assert "stats: is not a qualifier." in done.err
    assert "Did you mean status:?" in done.err
    assert loner("ps", "agent:review").out.strip() == "no tasks"
    id = loner.start("-n", "build:prod now", "--", "true")
    loner("wait", "-q", id)
    assert loner("ps", "build:prod").code == 2
    for words in (
        ['"build:prod"'],
        ["kind:shell", "now"],
        ["prod now", "-draft"],
        ["since:1h", "-status:failed"],
    ):
        assert loner("ps", "-q", "--", *words).out.strip() == id, words
    assert loner("ps", "-q", "kind:agent").out.strip() == ""


def test_a_command_has_nothing_to_go_on_with(person: Person, works: dict[str, str]):
    """The same kind of mistake, the same exit code; and no hint that leads to the next one."""
    resumed, forked = (person(verb, works["good"], "go on") for verb in ("resume", "fork"))
    assert (resumed.code, forked.code) == (2, 2)
    assert resumed.err.splitlines()[1] == forked.err.splitlines()[1] == "  Start a new task."
    answered = person("answer", works["good"], "yes")
    assert answered.code == 1
    assert answered.err.splitlines()[1] == "  Start a new one."


def test_a_batch_that_is_not_there(person: Person):
    done = person("batch", "zzz")
    assert done == (3, "", "meantime: No batch 'zzz'.\n  `meantime ps -a` lists tasks.\n")


def test_status_and_doctor_agree_on_the_ledger(loner: Person):
    loner("run", "-w", "-c", "exit 1")
    loner("run", "-w", "--", "true")
    assert "0 active · 2 ended, 1 not completed" in loner("status").out

    def agree() -> bool:  # as soon as nothing is written between the two
        size = next(line.split()[1:3] for line in loner("status").out.splitlines() if "durability" in line)
        return f"sound; {' '.join(size).rstrip(',')}\n" in loner("doctor").out

    until(agree, "status and doctor agree")
