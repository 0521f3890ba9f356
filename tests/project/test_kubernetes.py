"""The kustomize base in deploy/kubernetes: valid by the schemas of Kubernetes, and what its files say of each other agrees."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from places import ROOT

from memory_mcp.config.reading import load
from memory_mcp.features.cells.router_files import haproxy, litestream

BASE = ROOT / "deploy" / "kubernetes"
KUSTOMIZATIONS = sorted(BASE.rglob("kustomization.yaml"))
RESOURCES = sorted({*BASE.rglob("*.yaml")} - {*KUSTOMIZATIONS})
# Kinds of other projects, whose schemas kubernetes-validate doesn't have: what must be there.
OTHERS = {
    "ServiceMonitor": ("monitoring.coreos.com/v1", {"selector", "endpoints"}),
    "HTTPRoute": ("gateway.networking.k8s.io/v1", {"parentRefs", "rules"}),
}


def documents():
    return [(path, document) for path in RESOURCES for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))]


def named(kind, name):
    (found,) = [document for _, document in documents() if document["kind"] == kind and document["metadata"]["name"] == name]
    return found


def kustomization(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def pods():
    """The template of every pod, with the name of what makes it."""
    return [(d["metadata"]["name"], d["spec"]["template"]) for _, d in documents() if d["kind"] in ("StatefulSet", "Deployment")]


@pytest.mark.parametrize("version", ["1.30", "1.37"])
@pytest.mark.parametrize(("path", "document"), documents(), ids=lambda value: value.name if isinstance(value, Path) else value["kind"])
def test_every_resource_is_valid(path, document, version):
    if document["kind"] in OTHERS:
        version_of_kind, fields = OTHERS[document["kind"]]
        assert document["apiVersion"] == version_of_kind
        assert fields <= set(document["spec"])
        return
    kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize("path", KUSTOMIZATIONS, ids=lambda path: path.parent.name)
def test_what_a_kustomization_names_is_there_and_nothing_is_forgotten(path):
    tree = kustomization(path)
    assert tree["kind"] == ("Component" if path.parent.parent.name == "components" else "Kustomization")
    for entry in [*tree.get("resources", []), *tree.get("components", [])]:
        place = (path.parent / entry).resolve()
        assert place.is_file() or (place / "kustomization.yaml").is_file(), entry
    generated = [name for one in tree.get("configMapGenerator", []) for name in one["files"]]
    listed = {*tree.get("resources", []), *generated, "kustomization.yaml"}
    assert {file.name for file in path.parent.iterdir()} - listed == set()


def test_the_example_has_every_component():
    tree = kustomization(BASE / "example" / "kustomization.yaml")
    assert {Path(entry).name for entry in tree["components"]} == {path.name for path in (BASE / "components").iterdir()}


def test_the_router_is_made_for_the_cells_that_there_are():
    cells = named("StatefulSet", "memory")["spec"]
    variables = {one["name"]: one for one in cells["template"]["spec"]["containers"][0]["env"]}
    assert variables["MEMORY_MCP_CELL_OF"]["value"] == str(cells["replicas"])
    assert variables["MEMORY_MCP_CELL_INDEX"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['apps.kubernetes.io/pod-index']"
    service = named("Service", cells["serviceName"])
    assert service["spec"]["clusterIP"] == "None"
    # Whole names: HAProxy adds no search domain, and a name that the DNS doesn't know takes a cell down.
    address = f"memory-{{cell}}.{cells['serviceName']}.${{NAMESPACE}}.svc.cluster.local:{service['spec']['ports'][0]['port']}"
    (router,) = named("Deployment", "memory-router")["spec"]["template"]["spec"]["containers"]
    assert router["env"] == [{"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}]
    made = haproxy(cells["replicas"], address, ":8000", None)
    assert (BASE / "base" / "haproxy.cfg").read_text(encoding="utf-8") == made


@pytest.mark.skipif(shutil.which("haproxy") is None, reason="HAProxy is not installed: apt-get install haproxy")
def test_haproxy_takes_the_configuration():
    command = ["haproxy", "-c", "-f", str(BASE / "base" / "haproxy.cfg")]
    assert subprocess.run(command, capture_output=True, check=False, env={**os.environ, "NAMESPACE": "memory"}).returncode == 0


def test_the_server_takes_the_configuration_of_each_cell():
    cells = named("StatefulSet", "memory")["spec"]
    given = {one["name"]: one["value"] for one in cells["template"]["spec"]["containers"][0]["env"] if "value" in one}
    patches = kustomization(BASE / "components" / "tei" / "kustomization.yaml")["patches"]
    given |= {added["value"]["name"]: added["value"]["value"] for patch in patches for added in yaml.safe_load(patch["patch"])}
    text = (BASE / "base" / "config.json").read_text(encoding="utf-8")
    for index in range(cells["replicas"]):
        loaded = load(text, "config.json", {**given, "MEMORY_MCP_CELL_INDEX": str(index)})
        assert (loaded.settings.cell.index, loaded.settings.cell.of, loaded.warnings) == (index, cells["replicas"], ())
        assert loaded.settings.embeddings_url == "http://memory-embeddings:8080"
    assert "HOME" in given


def test_selectors_find_their_pods_and_mounts_their_volumes():
    labels = [set(template["metadata"]["labels"].items()) for _, template in pods()]
    for _, document in documents():
        spec = document["spec"]
        for selector in [spec.get("selector"), spec.get("podSelector")]:
            if selector and document["kind"] != "HTTPRoute":
                wanted = set(selector.get("matchLabels", selector).items())
                assert any(wanted <= known for known in labels), (document["kind"], wanted)
    claims = {claim["metadata"]["name"] for claim in named("StatefulSet", "memory")["spec"]["volumeClaimTemplates"]}
    for _, template in pods():
        volumes = {volume["name"] for volume in template["spec"].get("volumes", [])} | claims
        for container in [*template["spec"].get("initContainers", []), *template["spec"]["containers"]]:
            assert {mount["name"] for mount in container.get("volumeMounts", [])} <= volumes


def test_generated_configurations_are_those_that_the_pods_read():
    generated = {one["name"] for one in kustomization(BASE / "base" / "kustomization.yaml")["configMapGenerator"]}
    used = {volume["configMap"]["name"] for _, pod in pods() for volume in pod["spec"].get("volumes", []) if "configMap" in volume}
    assert used == generated
    assert json.loads((BASE / "base" / "config.json").read_text(encoding="utf-8"))["allowed_hosts"]


def test_no_pod_of_ours_has_more_rights_than_it_needs():
    for name, template in pods():
        assert template["spec"]["automountServiceAccountToken"] is False
        assert template["spec"]["securityContext"]["runAsNonRoot"] is True
        assert template["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in [*template["spec"].get("initContainers", []), *template["spec"]["containers"]]:
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            if name in ("memory", "memory-router"):
                assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_probes_ask_what_the_server_answers_under_a_name_that_it_knows():
    container = named("StatefulSet", "memory")["spec"]["template"]["spec"]["containers"][0]
    asked = {kind: container[kind]["httpGet"] for kind in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {kind: probe["path"] for kind, probe in asked.items()} == {
        "startupProbe": "/health",
        "livenessProbe": "/health",
        "readinessProbe": "/ready",
    }
    assert all(probe["httpHeaders"] == [{"name": "Host", "value": "localhost"}] for probe in asked.values())
    assert re.search(r"hdr Host localhost", (BASE / "base" / "haproxy.cfg").read_text(encoding="utf-8"))


def test_patched_as_a_component_patches_it_the_set_of_cells_is_valid():
    cells = named("StatefulSet", "memory")
    for component in ("tei", "litestream"):
        for patch in kustomization(BASE / "components" / component / "kustomization.yaml")["patches"]:
            for step in yaml.safe_load(patch["patch"]):
                *path, end = step["path"].strip("/").split("/")
                place = cells
                for part in path:
                    place = place[int(part)] if isinstance(place, list) else place[part]
                assert (step["op"], end) == ("add", "-")
                place.append(step["value"])
    kubernetes_validate.validate(cells, "1.37", strict=True)
    # A sidecar, which ends after the server: else its last writes wait for the next pod.
    assert {one["name"]: one.get("restartPolicy") for one in cells["spec"]["template"]["spec"]["initContainers"]} == {
        "tokens": None,
        "litestream": "Always",
    }
    made = BASE / "components" / "litestream" / "litestream.yml"
    assert made.read_text(encoding="utf-8") == litestream(Path("/data"), "s3://bucket/memory")
