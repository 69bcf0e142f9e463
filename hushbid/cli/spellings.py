"""What people type by mistake or habit: former spellings of options, and words that are not verbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

__all__ = ["BEFORE", "MEANT", "meant", "present"]

_OUT: Final = {"--out": "--output"}
_DIRECTORY: Final = {"--directory": "--output"}
BEFORE: Final[Mapping[str, Mapping[str, str]]] = {
    "advise": {"--write": "--output"},
    "bench owners": _DIRECTORY,
    "experiment": _OUT,
    "invite": _OUT,
    "keys new": _DIRECTORY,
    "keys request": _OUT,
    "publish kme": _OUT,
    "publish race": _OUT,
    "run": _DIRECTORY,
    "simulate": {"--record": "--output"},
}
"""Former spellings of options, by verb or group of verbs; they still work."""

MEANT: Final[Mapping[str, str]] = {
    "buy procure purchase": "`hushbid run CLUSTER.toml` buys on this machine, `hushbid consumer` as one of "
    "several parties; `hushbid plan` estimates the session first",
    "start begin launch go demo": "`hushbid init TABLE` begins a session of your own, and "
    "`hushbid run digits` runs the demonstration; `hushbid run CLUSTER.toml` runs a session on this machine, "
    "and `hushbid curator`, `owner` and `consumer` start one party each",
    "new create quickstart setup-session": "`hushbid init TABLE` makes the files of a session from tables",
    "serve server host coordinator": "`hushbid curator` runs a session's rounds",
    "join sell seller offer enrol enroll client": "`hushbid owner` takes part as an owner",
    "buyer": "`hushbid consumer` takes part as the consumer",
    "check doctor validate test ping diagnose": "`hushbid preflight` checks whether a party can take part "
    "from this machine; `hushbid transcript verify` checks transcripts",
    "log logs ps list monitor top progress": "`hushbid status DIR` shows what parties are doing, and "
    "`hushbid status DIR --watch` keeps showing it",
    "key keygen genkey register": "`hushbid keys new NAME` makes a key, and `hushbid keys request` asks for "
    "a place on the roster",
    "budget spent epsilon privacy accounting": "`hushbid ledger FILE` shows the privacy spent",
    "suggest recommend tune settings configure config": "`hushbid advise` proposes settings for a session",
    "estimate cost price preview dry-run": "`hushbid plan` estimates a session",
    "rehearse rehearsal": "`hushbid plan CLUSTER.toml` and `hushbid preflight` rehearse a session",
    "rank": "`hushbid screen` ranks owners by their catalogue entries",
    "catalogue catalog": "`hushbid publish` makes catalogue entries, and `hushbid screen` ranks them",
    "encode decode columns": "`hushbid schema encode` and `hushbid schema decode` do that",
    "model fit": "`hushbid train` trains a model on delivered points",
    "weights weight": "`hushbid weigh` weighs delivered points",
    "shapley worth attribute": "`hushbid value` values each owner's points",
    "result outcome delivered points": "`hushbid results STATE` evaluates, weighs and exports a purchase",
    "page html plot": "`hushbid report` writes a page on a session",
    "verify diff export redact": "`hushbid transcript verify`, `diff` and `export` do that",
    "retry repeat rerun": "`hushbid again SESSION` restarts an abandoned session",
    "resume continue restart": "`hushbid curator`, `owner` or `consumer` with the same state directory goes "
    "on where it was",
    "version": "`hushbid --version` prints it",
    "help": "`hushbid --help` lists the verbs, and `hushbid VERB --help` shows a verb's options",
}
"""Words that people try, and the verbs that do what they mean."""


def present(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command line, with former spellings of options replaced by present ones."""
    words = [each for each in arguments[:3] if not each.startswith("-")]
    words = words[1:] if words[:1] == ["evidence"] else words
    spellings: dict[str, str] = {}
    for verb in (" ".join(words[:1]), " ".join(words[:2])):
        spellings |= BEFORE.get(verb, {})
    rewritten, end = [], False
    for each in arguments:
        end = end or each == "--"
        name, equals, value = each.partition("=")
        rewritten.append(each if end else f"{spellings.get(name, name)}{equals}{value}")
    return rewritten


def meant(word: str, verbs: Sequence[str]) -> str:
    """An answer to an unknown word: the intended verb, as far as it can be guessed."""
    said = f"There is no verb {word!r}."
    for words, answer in MEANT.items():
        if word.lower() in words.split():
            return f"{said} {answer}."
    from difflib import get_close_matches

    alike = get_close_matches(word, verbs, n=3)
    return f"{said} Did you mean {' or '.join(f'`hushbid {each}`' for each in alike)}?" if alike else said
