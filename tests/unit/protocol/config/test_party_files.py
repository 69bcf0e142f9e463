"""A party's private file: where its paths lead, and what a seed may be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hushbid.cluster.file import ConsumerSection
from hushbid.protocol.config.loading import validated
from hushbid.protocol.config.party import ConsumerFile, CuratorFile, OwnerFile
from hushbid.protocol.errors import ConfigError
from tests.conftest import ROOT
from tests.support.session_files import text

CONSUMER = {"state": "state", "validation": "v.npz", "seed_set": "/data/s.npz"}


def test_relative_paths_are_relative_to_the_file() -> None:
    file = validated(ConsumerFile, CONSUMER, where="party.toml").resolved(Path("/srv/buyer"))
    assert (file.state, file.validation) == (Path("/srv/buyer/state"), Path("/srv/buyer/v.npz"))
    assert file.seed_set == Path("/data/s.npz")
    assert (file.key, file.test) == (None, None)


def test_a_file_s_own_directory_may_be_relative_or_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = validated(CuratorFile, {"state": "../state", "key": "~/k.key"}, where="party.toml")
    assert file.resolved(Path("curator")).state == tmp_path / "state"
    assert file.resolved(Path()).state == tmp_path.parent / "state"
    assert file.resolved(Path()).key == Path.home() / "k.key"


@pytest.mark.parametrize(
    ("flags", "named"), [((), "owner/north.npz"), (("--data", "north.npz"), "north.npz")]
)
def test_a_command_takes_the_file_s_paths_from_there_and_flags_from_here(
    tmp_path: Path, flags: tuple[str, ...], named: str
) -> None:
    (tmp_path / "session.toml").write_text(text({}))
    (tmp_path / "owner").mkdir()
    (tmp_path / "owner" / "party.toml").write_text('name = "alpha"\nstate = "state"\ndata = "north.npz"\n')
    arguments = ["--session", "session.toml", "--config", "owner/party.toml", "--json", *flags]
    done = subprocess.run(
        [sys.executable, "-m", "owner", *arguments],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 4, done.stderr
    what = json.loads(done.stdout)["error"]["what"]
    assert f"The data file {tmp_path / named} " in what


@pytest.mark.parametrize("model", [ConsumerFile, ConsumerSection])
def test_a_seed_that_no_model_takes_is_refused_before_the_session(model: type) -> None:
    own = CONSUMER if model is ConsumerFile else {}
    assert validated(model, own | {"seed": 2**32 - 1}, where="x.toml").seed == 2**32 - 1
    for seed in (-1, 2**32):
        with pytest.raises(ConfigError, match=r"^x\.toml: seed: "):
            validated(model, own | {"seed": seed}, where="x.toml")


def test_an_owner_s_data_are_its_own() -> None:
    file = validated(OwnerFile, {"name": "a", "state": "s", "data": "d.npz"}, where="party.toml")
    assert file.resolved(Path("/x")).data == Path("/x/d.npz")
    assert file.resolved(Path("/x")).name == "a"
