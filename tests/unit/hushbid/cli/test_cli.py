"""The command line: exit codes, JSON on stdout and nothing else, and help for every verb."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.main import get_command

from hushbid.cli import listing, spellings
from hushbid.cli.app import GROUPS, app, evidence_verbs, main
from hushbid.cluster.file import open_cluster
from hushbid.protocol import __version__
from hushbid.protocol.runtime.command import say
from hushbid.protocol.runtime.keys import read_public, read_secret
from hushbid.running.simulate import simulate
from tests.conftest import ROOT
from tests.unit.hushbid.cluster.test_cluster import files_cluster

DIGITS = str(ROOT / "configs" / "digits" / "sealed.toml")
SHORT = ("--set", "session.points=5")
EPSILON = {"mechanism": "filtered-gaussian", "epsilon": 3.0}
PRIVATE = {
    "target": EPSILON | {"neighbours": "substitute-one"},
    "summary": EPSILON | {"neighbours": "add-remove-one"},
}


def verbs(command: Any, *names: str) -> Iterator[str]:
    """All verbs, such as "keys new"."""
    below = getattr(command, "commands", None)
    if below is None:
        yield " ".join(names)
        return
    for name, each in below.items():
        yield from verbs(each, *names, name)


VERBS = [verb for verb in verbs(get_command(app)) if not verb.startswith("evidence ")]  # as before it
LISTED = sorted(verb for group in GROUPS.values() for verb in group)


class Ended:
    """How the command line ended in this process."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> dict[str, Any]:
        """The only object on stdout."""
        assert len(self.out.splitlines()) == 1, self.out
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found

    @property
    def json_lines(self) -> list[dict[str, Any]]:
        """The objects on stdout, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def hushbid(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """`hushbid("keys", "new", "bob")` runs the command line."""
    for name in [name for name in os.environ if name.startswith("HUSHBID_")]:
        monkeypatch.delenv(name)
    # Else the program's name is `python -m pytest`, where that is how the tests are run.
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None)

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["hushbid", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ending:
            main()
        captured = capfd.readouterr()
        assert isinstance(ending.value.code, int)
        return Ended(int(ending.value.code), captured.out, captured.err)

    return run


# -- help and usage --------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_and_takes_json(hushbid: Any, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    ended = hushbid(*verb.split(), "--help")
    assert ended.code == 0
    assert "--json" in ended.out


@pytest.mark.parametrize("verb", ["advise", "train", "value", "weigh"])
def test_brackets_in_help_are_printed_and_are_no_markup(
    hushbid: Any, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert "[[columns]]," in hushbid(verb, "--help").out


def test_the_help_lists_the_verbs_and_the_exit_codes(hushbid: Any) -> None:
    text = " ".join(hushbid("--help").out.split())
    for word in (*GROUPS, *LISTED):
        assert f" {word} " in text
    for verb in ("health", "watch", *evidence_verbs()):  # as they were called before
        assert f"│ {verb} " not in text
    assert "130 a run or simulation was interrupted" in text


@pytest.mark.parametrize("verb", LISTED)
def test_what_help_says_of_a_verb_begins_what_its_own_help_says(verb: str) -> None:
    group: Any = get_command(app)
    command = group.commands[verb]
    assert " ".join((command.help or "").split("\n\n")[0].split()) == listing.SHORT[verb]


def test_help_imports_no_verb_and_nothing_for_markdown() -> None:
    code = (
        "import sys; from hushbid.cli.app import main\n"
        "sys.argv = ['hushbid', '--help']\n"
        "try: main()\n"
        "except SystemExit: sys.stderr.write(' '.join(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Take part" in ended.stdout
    imported = set(ended.stderr.split())
    assert not {"markdown_it", "pygments", "numpy", "pydantic", "annotated_types", "nacl"} & imported
    own = {name for name in imported if name.startswith("hushbid.cli.")}
    assert own == {"hushbid.cli.app", "hushbid.cli.listing", "hushbid.cli.spellings"}


@pytest.mark.parametrize("verb", [(), ("keys",), ("evidence",), ("bench",), ("evidence", "bench")])
def test_who_asks_for_nothing_is_shown_what_there_is(hushbid: Any, verb: tuple[str, ...]) -> None:
    ended = hushbid(*verb)
    assert (ended.code, ended.err) == (4, "")
    assert ended.out.strip() == hushbid(*verb, "--help").out.strip() != ""


@pytest.mark.parametrize("verb", [(), ("run",), ("keys", "new"), ("evidence", "bench", "rules")])
def test_help_has_a_short_name(hushbid: Any, verb: tuple[str, ...]) -> None:
    assert hushbid(*verb, "-h").out == hushbid(*verb, "--help").out != ""


@pytest.mark.parametrize(
    ("word", "verb"),
    [
        ("start", "hushbid run digits"),
        ("procure", "hushbid run CLUSTER.toml"),
        ("Doctor", "hushbid preflight"),
        ("logs", "hushbid status"),
        ("advice", "hushbid advise"),
        ("simulat", "hushbid simulate"),
    ],
)
def test_a_word_that_is_no_verb_is_answered_with_one(hushbid: Any, word: str, verb: str) -> None:
    ended = hushbid(word)
    assert ended.code == 4
    assert f"There is no verb {word!r}" in ended.err
    assert f"`{verb}" in ended.err


def test_verbs_that_are_suggested_are_there() -> None:
    named = {verb for answer in spellings.MEANT.values() for verb in re.findall(r"`hushbid ([a-z]+)", answer)}
    assert len(named) > 15
    assert named <= set(LISTED)


def test_words_that_are_answered_are_no_verbs() -> None:
    words = [word for words in spellings.MEANT for word in words.split()]
    assert len(set(words)) == len(words)
    assert not {*words} & {*get_command(app).commands}  # type: ignore[attr-defined]


@pytest.mark.parametrize(("verb", "options"), spellings.BEFORE.items())
def test_options_as_they_were_spelled_before_are_taken(verb: str, options: dict[str, str]) -> None:
    command: Any = get_command(app)
    for word in verb.split():
        command = command.get_command(None, word)
    for leaf in getattr(command, "commands", {"": command}).values():
        taken = {option for parameter in leaf.params for option in parameter.opts}
        assert taken >= set(options.values())
        assert not taken & set(options)
    for old, new in options.items():
        for given in (verb.split(), ["evidence", *verb.split()]):
            assert spellings.present([*given, old, "a", "--", old]) == [*given, new, "a", "--", old]
            assert spellings.present([*given, f"{old}=a"]) == [*given, f"{new}=a"]


def test_a_shell_completes_verbs_without_those_of_before(
    hushbid: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = {"_HUSHBID_COMPLETE": "complete_bash", "COMP_WORDS": "hushbid s", "COMP_CWORD": "1"}
    for name, value in shell.items():
        monkeypatch.setenv(name, value)
    ended = hushbid()
    assert set(ended.out.split()) == {verb for verb in LISTED if verb.startswith("s")}


def test_quiet_leaves_remarks_out_and_keeps_warnings_results_and_errors(
    hushbid: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    quiet = hushbid("simulate", DIGITS, *SHORT, "--quiet")  # which rehearses first
    say("a remark")
    say("WARNING: this is told")
    assert capfd.readouterr().err == "WARNING: this is told\n"
    assert (quiet.code, quiet.err) == (0, "")
    assert "random rows" in quiet.out
    refused = hushbid("keys", "show", str(tmp_path / "nobody.key"), "-q")
    assert refused.code == 4
    assert "nobody.key" in refused.err
    hushbid("--version")
    say("a remark")
    assert capfd.readouterr().err == "a remark\n", "it is of one call alone"


def test_the_version_is_the_package_s(hushbid: Any) -> None:
    ended = hushbid("--version")
    assert (ended.code, ended.out) == (0, f"hushbid {__version__}\n")


@pytest.mark.parametrize("arguments", [("--version", "--json"), ("--json", "--version")])
def test_what_results_depend_on_is_told_with_the_version(hushbid: Any, arguments: tuple[str, ...]) -> None:
    ended = hushbid(*arguments)
    assert ended.code == 0
    assert {"hushbid": __version__, "numpy": np.__version__}.items() <= ended.json.items()
    assert {"python", "libzmq", "scipy", "opendp", "pyzmq"} <= ended.json.keys()


def test_json_of_no_verb_and_no_version_is_refused(hushbid: Any) -> None:
    ended = hushbid("--json", "run", "digits")
    assert ended.code == 4
    assert "without --version it goes after the verb" in ended.err + ended.out


USAGE = [
    pytest.param(("procure",), "procure", id="unknown verb"),
    pytest.param(("run",), "CLUSTER.toml", id="no cluster file"),
    pytest.param(("run", DIGITS, "--fast"), "--fast", id="unknown option"),
    pytest.param(("simulate", DIGITS, "--owners", "many"), "--owners", id="no number"),
    pytest.param(("simulate", DIGITS, "--owners", "0"), "--owners", id="out of range"),
    pytest.param(("owner",), "--session", id="no session"),
    pytest.param(("simulate", DIGITS, "--set", "session.points=none"), "session.points", id="bad setting"),
    pytest.param(("run", "missing.toml"), "missing.toml", id="no such file"),
]


@pytest.mark.parametrize(("arguments", "named"), USAGE)
def test_a_usage_error_ends_with_4_and_names_the_fault(
    hushbid: Any, arguments: tuple[str, ...], named: str
) -> None:
    ended = hushbid(*arguments)
    assert (ended.code, ended.out) == (4, "")
    assert named in ended.err


@pytest.mark.parametrize(("arguments", "named"), USAGE)
def test_with_json_a_usage_error_is_an_object_too(
    hushbid: Any, arguments: tuple[str, ...], named: str
) -> None:
    ended = hushbid(*arguments, "--json")
    assert ended.code == 4
    assert set(ended.json["error"]) == {"kind", "what", "advice", "exit_code"}
    assert named in ended.json["error"]["what"]
    assert ended.json["error"]["exit_code"] == 4


# -- simulate --------------------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A cluster file of two owners, whose session takes a moment: no model is tried without labels."""
    features = {"gamma": 1.0, "columns": 2, "dimension": 8}
    path = files_cluster(tmp_path, features=features, acquisition={"rule": "sealed"}, **PRIVATE)
    return str(path)


def test_simulate_prints_tables_for_people(hushbid: Any, small: str) -> None:
    ended = hushbid("simulate", small, "--no-rehearsal")
    assert ended.code == 0
    assert "random rows" in ended.out
    assert ended.err == ""


def test_simulate_prints_one_object_and_the_tables_to_stderr(hushbid: Any, small: str) -> None:
    ended = hushbid("simulate", small, "--anyway", "--json")
    assert ended.code == 0
    assert (ended.json["p"], ended.json["owners"], ended.json["rounds"]) == (5, 2, 5)
    assert "random rows" in ended.err


def test_simulate_takes_another_number_of_owners(hushbid: Any, small: str) -> None:
    ended = hushbid("simulate", small, "--anyway", "--owners", "30", "--owner-points", "20", "--json")
    assert ended.json["owners"] == len(ended.json["settlement"]) == 30


def test_a_simulation_of_the_same_file_gives_the_same_result(
    hushbid: Any, small: str, tmp_path: Path
) -> None:
    rows = np.random.default_rng(1).random((20, 2))
    np.savez(tmp_path / "validation.npz", features=rows, labels=(rows[:, 0] > 0.5).astype(int))
    first, second = (hushbid("simulate", small, "--anyway", "--json").json for _ in range(2))
    assert first["points_delivered"] == 5
    timing = {"wall_seconds", "rounds_per_second"}
    assert {k: v for k, v in first.items() if k not in timing} == {
        k: v for k, v in second.items() if k not in timing
    }


def test_a_variable_gives_the_data_and_a_flag_goes_before_it(
    hushbid: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mnist = str(ROOT / "configs" / "mnist" / "cluster.toml")
    monkeypatch.setenv("HUSHBID_DATA", "from-variable.npz")
    assert "from-variable.npz" in hushbid("simulate", mnist).err
    ended = hushbid("simulate", mnist, "--data", "from-flag.npz", "--json")
    assert "from-flag.npz" in ended.json["error"]["what"]


# -- keys ------------------------------------------------------------------------------------------------


def test_keys_new_makes_a_pair_of_files(hushbid: Any, tmp_path: Path) -> None:
    made = hushbid("keys", "new", "bob", "--directory", str(tmp_path), "--json").json
    pair = read_secret(Path(made["secret_file"]))
    assert made["public"] == pair.public.text == read_public(Path(made["public_file"])).text
    assert pair.secret not in json.dumps(made)


def test_keys_show_gives_the_same_of_either_file(hushbid: Any, tmp_path: Path) -> None:
    made = hushbid("keys", "new", "bob", "--directory", str(tmp_path), "--json").json
    for file in (made["secret_file"], made["public_file"]):
        ended = hushbid("keys", "show", file)
        assert ended.code == 0
        assert made["public"] in ended.out
        assert made["fingerprint"] in ended.out
        assert read_secret(Path(made["secret_file"])).secret not in ended.out


def test_an_existing_key_is_never_replaced(hushbid: Any, tmp_path: Path) -> None:
    hushbid("keys", "new", "bob", "--directory", str(tmp_path))
    before = (tmp_path / "bob.key").read_bytes()
    assert hushbid("keys", "new", "bob", "--directory", str(tmp_path)).code == 4
    assert (tmp_path / "bob.key").read_bytes() == before


def test_half_a_pair_is_not_left(hushbid: Any, tmp_path: Path) -> None:
    (tmp_path / "bob.pub").touch()
    assert hushbid("keys", "new", "bob", "--directory", str(tmp_path)).code == 4
    assert not (tmp_path / "bob.key").exists()


@pytest.mark.parametrize("name", ["../bob", "a/b", "", "Bob"])
def test_a_key_is_named_as_a_roster_can_have_it(hushbid: Any, tmp_path: Path, name: str) -> None:
    assert hushbid("keys", "new", name, "--directory", str(tmp_path)).code == 4
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_others_can_read_is_refused_with_what_to_do(hushbid: Any, tmp_path: Path) -> None:
    hushbid("keys", "new", "bob", "--directory", str(tmp_path))
    (tmp_path / "bob.key").chmod(0o644)
    ended = hushbid("keys", "show", str(tmp_path / "bob.key"))
    assert ended.code == 4
    assert "chmod 600" in ended.err


# -- transcript ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of `simulate --record`; tests work on copies."""
    place = tmp_path_factory.mktemp("recorded") / "record"
    simulate(open_cluster(Path(DIGITS), settings=[SHORT[1]]), record=place, report=False, models=False)
    return place


@pytest.fixture
def recorded(record: Path, tmp_path: Path) -> Path:
    return shutil.copytree(record, tmp_path / "record")


def test_transcript_verify_checks_every_file(hushbid: Any, recorded: Path) -> None:
    files = sorted(map(str, recorded.glob("*.transcript")))
    assert len(files) == 7
    ended = hushbid("transcript", "verify", *files, "--json")
    assert ended.code == 0
    assert ended.json["ok"]
    assert [each["path"] for each in ended.json["transcripts"]] == files


def test_a_damaged_transcript_ends_with_1_and_the_others_are_checked(hushbid: Any, recorded: Path) -> None:
    damaged, whole = recorded / "curator.transcript", recorded / "consumer.transcript"
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    ended = hushbid("transcript", "verify", str(damaged), str(whole), "--json")
    assert ended.code == 1
    assert [each["ok"] for each in ended.json["transcripts"]] == [False, True]
    assert hushbid("transcript", "verify", str(damaged)).code == 1


def test_what_is_no_transcript_ends_with_4(hushbid: Any, recorded: Path) -> None:
    ended = hushbid("transcript", "verify", str(recorded / "nobody.transcript"), "--json")
    assert ended.code == 4
    assert not ended.json["ok"]


def test_transcript_show_gives_the_records_as_json_lines(hushbid: Any, recorded: Path) -> None:
    path = str(recorded / "curator.transcript")
    ended = hushbid("transcript", "show", path, "--limit", "3", "--json")
    assert ended.code == 0
    header, *records, end = ended.json_lines
    assert (header["type"], header["role"]) == ("header", "curator")
    assert [record["record"] for record in records] == [0, 1, 2]
    assert (end["type"], end["records"]) == ("end", 3)
    assert "started" in hushbid("transcript", "show", path, "--limit", "1").out


def test_transcript_show_of_a_kind_that_is_not_there_lists_those_that_are(
    hushbid: Any, recorded: Path
) -> None:
    ended = hushbid("transcript", "show", str(recorded / "curator.transcript"), "--kind", "wieghts", "--json")
    assert ended.code == 0
    assert [line["type"] for line in ended.json_lines] == ["header", "end"]
    assert "'wieghts'" in ended.err
    assert "weights-computed" in ended.err


def test_transcript_show_hides_private_values_unless_asked(hushbid: Any, recorded: Path) -> None:
    path = str(recorded / "digits-34.transcript")

    def private(*flags: str) -> str:
        ended = hushbid("transcript", "show", path, "--kind", "scored", "--limit", "1", "--json", *flags)
        outcomes = [item for record in ended.json_lines[1:-1] for item in record["effects"]]
        return json.dumps([item["private"] for item in outcomes if item["kind"] == "scored"])

    assert "score" in private("--private")
    assert "commitment" in private()
    assert "commitment" not in private("--private")


def test_transcript_show_chooses_rounds_and_refuses_what_is_none(hushbid: Any, recorded: Path) -> None:
    path = str(recorded / "digits-34.transcript")

    def rounds(text: str) -> set[int]:
        ended = hushbid("transcript", "show", path, "--round", text, "--kind", "scored", "--json")
        assert ended.code == 0
        records = ended.json_lines[1:-1]
        return {item["public"]["round"] for record in records for item in record["effects"]}

    assert rounds("2") == {2}
    assert rounds("2:4") == {2, 3, 4}
    for text in ("", ":", "2:", ":2", "4:2", "-1", "two", "1:2:3"):
        ended = hushbid("transcript", "show", path, f"--round={text}", "--json")
        assert (ended.code, ended.json["error"]["kind"]) == (4, "ConfigError"), text


def test_transcript_show_by_peer_needs_private(hushbid: Any, recorded: Path) -> None:
    arguments = ("transcript", "show", str(recorded / "curator.transcript"), "--peer", "digits-34", "--json")
    assert hushbid(*arguments).code == 4
    ended = hushbid(*arguments, "--private")
    assert ended.code == 0
    assert ended.json_lines[-1]["records"] > 0


def test_transcript_show_of_a_damaged_file_ends_in_the_error(hushbid: Any, recorded: Path) -> None:
    path = recorded / "curator.transcript"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    ended = hushbid("transcript", "show", str(path), "--json")
    assert ended.code == 1
    *lines, error = ended.json_lines
    assert error["error"]["kind"] == "TranscriptDamaged"
    assert [line["type"] for line in lines] == ["header", *["record"] * (len(lines) - 1)]
    assert lines[-1]["record"] == len(lines) - 2, "all that holds is shown"


def test_transcript_export_makes_a_redacted_copy_with_the_same_head(hushbid: Any, recorded: Path) -> None:
    original, copy = str(recorded / "curator.transcript"), str(recorded / "public.transcript")
    ended = hushbid("transcript", "export", original, "--output", copy, "--redact", "--json")
    assert ended.code == 0
    checked = hushbid("transcript", "verify", original, copy, "--json").json["transcripts"]
    assert {each["head"] for each in checked} == {ended.json["head"]}
    assert checked[1]["redacted_fields"] == checked[1]["private_fields"] > 0
    assert hushbid("transcript", "export", original, "--output", copy, "--redact").code == 4


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_transcript_export_tells_what_is_in_the_file(hushbid: Any, recorded: Path, form: str) -> None:
    arguments = ("transcript", "export", str(recorded / "consumer.transcript"), "--format", form)
    ended = hushbid(*arguments, "--output", str(recorded / "whole"))
    assert ended.code == 0
    assert "keep it as private as the data" in ended.err
    ended = hushbid(*arguments, "--output", str(recorded / "redacted"), "--redact")
    assert ended.code == 0
    assert "differentially private" in ended.err


def test_transcript_export_refuses_formats_that_it_has_not_and_plain_copies(
    hushbid: Any, recorded: Path
) -> None:
    path, output = str(recorded / "curator.transcript"), recorded / "output"
    arguments = ("transcript", "export", path, "--output", str(output))
    ended = hushbid(*arguments, "--format", "csv", "--json")
    assert (ended.code, "jsonl" in ended.json["error"]["advice"]) == (4, True)
    assert hushbid(*arguments).code == 4
    assert not output.exists()


def test_transcript_diff_ends_with_1_where_sessions_part(
    hushbid: Any, recorded: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    cluster = open_cluster(Path(DIGITS), settings=["session.points=6"])
    simulate(cluster, record=other, report=False, models=False)
    first, second = (str(place / "curator.transcript") for place in (recorded, other))
    ended = hushbid("transcript", "diff", first, first, "--json")
    assert (ended.code, ended.json["same"]) == (0, True)
    ended = hushbid("transcript", "diff", first, second, "--json")
    assert (ended.code, ended.json["same"]) == (1, False)
    ended = hushbid("transcript", "diff", first, second)
    assert ended.code == 1
    assert "They part at record" in ended.out
    assert hushbid("transcript", "diff", first, str(recorded / "consumer.transcript")).code == 4
    assert hushbid("transcript", "diff", first, str(recorded / "nobody")).code == 4


# -- the program -----------------------------------------------------------------------------------------


def test_the_package_runs_as_a_program() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "hushbid", "--version"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, f"hushbid {__version__}\n")
