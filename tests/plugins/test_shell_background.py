"""F3: a trailing `&` means background, as a shell reads it. bash itself is asked for a second opinion."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from meantime.dialects.jaato.shell_background import split_background

TRAILING = {
    "make &": "make",
    "make&": "make",
    "  make  &  ": "  make",
    "make &\n\n": "make",
    "make & # and be quick": "make",
    "make & \\\n": "make",
    "a | b &": "a | b",
    "echo a\\ &": "echo a\\ ",
    "echo a\\\\ &": "echo a\\\\",
    "make \\\n &": "make \\\n",
    "a && b &": "a && b",
    "a & b &": "a & b",
    "a\nb &": "a\nb",
    "(a; b) &": "(a; b)",
    "{ a; b; } &": "{ a; b; }",
    "echo '&' &": "echo '&'",
    "echo a#b &": "echo a#b",
    "echo ${x#y} $# &": "echo ${x#y} $#",
    "a >&2 &": "a >&2",
    "a 2>&1 &": "a 2>&1",
    "echo $((1 << 2)) &": "echo $((1 << 2))",
    "case x in a) b;; esac &": "case x in a) b;; esac",
    "echo $(case x in a) b;; esac) &": "echo $(case x in a) b;; esac)",
    'echo "$(cat <<E\n"\nE\n)" &': 'echo "$(cat <<E\n"\nE\n)"',
    "cat <<< x &": "cat <<< x",
    # The body of a here-document follows the line that ends in `&`, and must stay.
    "cat <<EOF &\nbody &\nEOF\n": "cat <<EOF \nbody &\nEOF\n",
    "cat <<'A' <<-B &\nx\nA\n\ty\n\tB\n": "cat <<'A' <<-B \nx\nA\n\ty\n\tB\n",
    "cat <<EOF\nx\\\nEOF\nEOF\nmake &": "cat <<EOF\nx\\\nEOF\nEOF\nmake",
}
NOT_TRAILING = [
    "",
    "make",
    "a & b",
    "a && b",
    "a &&",
    "a >& out",
    "a &> out",
    "a &>> out",
    "a |& b",
    "a 2>&1",
    "a >&",
    "echo '&'",
    "echo 'a &",
    'echo "a &"',
    'echo "a \\" &"',
    "echo a \\&",
    "echo $'it\\'s &'",
    "make # &",
    "make #&\n# &",
    "echo $(a &)",
    "echo `a &`",
    "(a &)",
    "{ a & }",
    "for i in 1; do a & done",
    "case x in a) b & ;; esac",
    "cat <<EOF\n&\nEOF",
    "cat <<EOF\nmake &",
    "cat <<-'EOF'\n\tx &\n\tEOF\n",
    "cat <<A <<B\n&\nA\n&\nB\n",
    "cat << \tEOF\n&\nEOF",
    "cat <<\\EOF\n&\nEOF",
    "x=(a (b &))",
    "((x = $y & '2'))",
    "cat <<EOF\nx\\\nEOF\n&",
    "echo $((1 &",
    # What no shell takes is left for the shell to refuse.
    "&",
    "a\n&",
    "a; &",
    "a & &",
    "a &;",
    "a | &",
    "a &\\\n& b",
]


@pytest.mark.behaviour("F3")
@pytest.mark.parametrize(("command", "rest"), TRAILING.items())
def test_a_trailing_ampersand_means_background(command: str, rest: str):
    assert split_background(command) == (rest, True)


@pytest.mark.behaviour("F3")
@pytest.mark.parametrize("command", NOT_TRAILING)
def test_any_other_ampersand_does_not_mean_background(command: str):
    assert split_background(command) == (command, False)


@pytest.mark.behaviour("F3")
@given(st.text())
@example("(" * 5_000)
@example("$(" * 5_000 + " &")
def test_any_text_is_answered(command: str):
    """It never raises, and what it takes away is one `&` and blanks at most."""
    rest, background = split_background(command)
    assert background or rest == command
    assert "&" in command or not background


PLAIN = [
    "true",
    "echo a",
    "&",
    "&",
    "&&",
    "||",
    "|",
    "|&",
    ";",
    "\n",
    " ",
    "&\t",
    "2>&1",
    "&>/dev/null",
    ">&2",
]
QUOTED = ["'&'", '"&"', '"$(true &)"', "\\&", "\\\n", "# c &", "`true &`", "$((1 & 1))", "${x:-&}", "$'\\'&'"]
GROUPS = ["(true)", "(true &)", "{ true & }", "if true; then true & fi", "case x in y) true & ;; esac"]
PIECES = st.sampled_from([*PLAIN, *QUOTED, *GROUPS])


def as_bash_reads(command: str) -> str | None:
    """The command as bash prints it after parsing, or None where it is no command."""
    script = f"f() {{\n:\n{command}\n}}\ndeclare -f f"
    run = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    if run.returncode or run.stderr:
        return None
    return run.stdout


@pytest.mark.breadth
@pytest.mark.behaviour("F3")
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash to ask")
@settings(max_examples=200)
@given(st.lists(PIECES, min_size=1, max_size=7).map(" ".join))
def test_bash_reads_the_command_in_the_same_way(command: str):
    """Where bash can parse it: with the `&` put back it is the same program, without it another."""
    parsed = as_bash_reads(command)
    rest, background = split_background(command)
    if parsed is None:
        return
    assert background == parsed.removesuffix("\n}\n").endswith(" &")
    if background:
        assert as_bash_reads(rest + " &") == parsed
        assert as_bash_reads(rest) not in (None, parsed)
