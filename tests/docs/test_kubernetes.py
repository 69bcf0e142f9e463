"""The manifests of configs/kubernetes are what a cluster takes, and say what the command line takes."""

from __future__ import annotations

import sys
from pathlib import Path

import kubernetes_validate
import pytest
import typer

from hushbid.cli.app import app, main
from hushbid.protocol import __version__
from hushbid.protocol.errors import ExitCode, Restart
from hushbid.protocol.runtime.keys import new_keypair
from tests.support.pods import MANIFESTS, Pod, documents, session_of, write_belongings

EVERY = pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: manifest.stem)
ELSEWHERE = ("XDG_STATE_HOME",)
"""Variables that no option has."""


def test_there_is_a_manifest_for_every_role() -> None:
    assert [manifest.stem for manifest in MANIFESTS] == ["consumer", "curator", "owner"]


@EVERY
@pytest.mark.parametrize("release", ["1.31", "1.37"])
def test_a_manifest_is_of_the_schema_that_clusters_publish(manifest: Path, release: str) -> None:
    for document in documents(manifest):
        kubernetes_validate.validate(document, release, strict=True)


def test_the_schema_refuses_what_is_none() -> None:
    [job] = [each for each in documents(MANIFESTS[0]) if each["kind"] == "Job"]
    job["spec"]["podFailurePolicy"]["rules"][1]["onExitCodes"]["codes"] = [1]
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, "1.37", strict=True)


@EVERY
def test_the_parts_of_a_manifest_name_each_other(manifest: Path) -> None:
    name = "hushbid-north" if manifest.stem == "owner" else f"hushbid-{manifest.stem}"
    pod, label = Pod.of(manifest), {"app": name}
    assert {each["metadata"]["name"] for each in documents(manifest)} == {name}
    assert pod.job["template"]["metadata"]["labels"] == label
    kinds = {each["kind"]: each for each in documents(manifest)}
    assert kinds["NetworkPolicy"]["spec"]["podSelector"] == {"matchLabels": label}
    named = {
        "session": pod.volumes["session"]["configMap"]["name"],
        "key": pod.volumes["key"]["secret"]["secretName"],
        "state": pod.volumes["state"]["persistentVolumeClaim"]["claimName"],
    }
    assert set(named.values()) == {name}
    for container in pod.containers:
        mounts = pod.mounts(container)
        assert set(mounts) == set(pod.volumes), "what there is is mounted"
        assert {each for each, mount in mounts.items() if not mount.get("readOnly")} == {"state", "tmp"}
        places = tuple(f"{mount['mountPath']}/" for mount in mounts.values())
        files = [value for value in pod.environment(container).values() if value.startswith("/")]
        assert all(f"{file}/".startswith(places) for file in files), "what is named is mounted"
        assert container["image"] == f"hushbid:{__version__}"


@EVERY
def test_a_pod_runs_verbs_that_there_are_with_what_they_take(manifest: Path) -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    pod = Pod.of(manifest)
    assert [each["args"][0] for each in pod.containers] == ["preflight", manifest.stem]
    for container in pod.containers:
        verb, *options = container["args"]
        assert set(options) <= {option for parameter in commands[verb].params for option in parameter.opts}
        read = {parameter.envvar for parameter in commands[verb].params}
        assert pod.environment(container).keys() <= {*read, *ELSEWHERE}, "what is set is read"
        required = {parameter.envvar for parameter in commands[verb].params if parameter.required}
        assert required <= pod.environment(container).keys(), "what is needed is set"
    probe = pod.containers[1]["readinessProbe"]["exec"]["command"]
    assert probe[:2] == ["hushbid", "health"]
    assert set(probe[2:]) <= {option for parameter in commands["health"].params for option in parameter.opts}


@EVERY
def test_a_job_is_given_up_where_another_start_cannot_help(manifest: Path) -> None:
    [disruption, codes] = Pod.of(manifest).job["podFailurePolicy"]["rules"]
    assert (disruption["action"], codes["action"]) == ("Ignore", "FailJob")
    over = {code for code in ExitCode if code.restart in (Restart.OVER, Restart.PERSON)}
    assert set(codes["onExitCodes"]["values"]) == over
    assert codes["onExitCodes"]["operator"] == "In"


@EVERY
def test_a_pod_is_of_the_restricted_standard(manifest: Path) -> None:
    """Pod Security Standards, "restricted", without anything specific to a cluster."""
    pod = Pod.of(manifest)
    context = pod.spec["securityContext"]
    assert (context["runAsNonRoot"], context["seccompProfile"]) == (True, {"type": "RuntimeDefault"})
    assert pod.spec["automountServiceAccountToken"] is False
    for container in pod.containers:
        own = container["securityContext"]
        assert (own["allowPrivilegeEscalation"], own["capabilities"]) == (False, {"drop": ["ALL"]})
        assert own["readOnlyRootFilesystem"] is True
    assert all({"hostPath", "hostNetwork"}.isdisjoint(each) for each in pod.volumes.values())
    assert pod.volumes["key"]["secret"]["defaultMode"] == 0o440


def test_the_curator_is_reached_where_it_listens() -> None:
    [manifest] = [each for each in MANIFESTS if each.stem == "curator"]
    kinds = {each["kind"]: each["spec"] for each in documents(manifest)}
    party = Pod.of(manifest).containers[1]
    [port], [served] = party["ports"], kinds["Service"]["ports"]
    assert Pod.environment(party)["HUSHBID_LISTEN"] == f"tcp://*:{port['containerPort']}"
    assert (served["port"], served["targetPort"]) == (port["containerPort"], port["name"])
    assert kinds["NetworkPolicy"]["ingress"] == [{"ports": [{"port": port["name"]}]}]
    for other in MANIFESTS:
        policy = {each["kind"]: each["spec"] for each in documents(other)}["NetworkPolicy"]
        called = {each["port"] for rule in policy.get("egress", []) for each in rule["ports"]}
        assert called == (set() if other == manifest else {53, served["port"]})


@EVERY
def test_a_pod_passes_its_own_preflight(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its manifest's environment, people's Secret and ConfigMap, and their data."""
    keys = {name: new_keypair() for name in ("curator", "consumer", "north")}
    name = "north" if manifest.stem == "owner" else manifest.stem
    write_belongings(tmp_path / "party", name, keys, session_of(keys), mounted=tmp_path / "party")
    (tmp_path / "party" / "state").mkdir()
    looks = Pod.of(manifest).containers[0]
    for name in ("HUSHBID_SESSION", "HUSHBID_CONFIG", "HUSHBID_STATE"):  # as the image has them
        monkeypatch.setenv(name, "/elsewhere")
    for name, value in Pod.environment(looks).items():
        monkeypatch.setenv(name, str(tmp_path / value[1:]) if value.startswith("/") else value)
    monkeypatch.setattr(sys, "argv", ["hushbid", *looks["args"]])
    with pytest.raises(SystemExit) as ending:
        main()
    assert ending.value.code == 0
