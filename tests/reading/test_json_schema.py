"""The JSON Schema that editors get."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from simulator.reading.json_schema import scenario_schema, service_schema
from simulator.schema.accelerators import Precision


def nodes(part: Any) -> Iterator[dict[str, Any]]:
    """Every object within a JSON value."""
    if isinstance(part, dict):
        yield part
        for inner in part.values():
            yield from nodes(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from nodes(inner)


def test_it_is_json_and_says_its_dialect() -> None:
    """A plain object that survives a round trip."""
    schema = scenario_schema()
    assert json.loads(json.dumps(schema)) == schema
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["properties"]["schema"]["const"] == 1


def test_every_key_is_described() -> None:
    """Each property of each section has a description."""
    schema = scenario_schema()
    sections = [schema, *schema["$defs"].values()]
    for section in sections:
        for key, node in section.get("properties", {}).items():
            target = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
            assert node.get("description") or target.get("description"), key


def test_sections_are_closed_and_null_is_never_offered() -> None:
    """Unknown keys are marked in the editor; TOML has no null."""
    schema = scenario_schema()
    assert schema["additionalProperties"] is False
    assert all(part["additionalProperties"] is False for part in schema["$defs"].values())
    for node in nodes(schema):
        assert node.get("type") != "null"
        assert not ("default" in node and node["default"] is None)


def test_quantities_are_text_with_examples_and_choices_are_lists() -> None:
    """What the editor can complete."""
    definitions = scenario_schema()["$defs"]
    size = definitions["Dataset"]["properties"]["bytes_per_sample"]
    assert size["type"] == "string"
    assert size["examples"] == ["114 kB"]
    precision = definitions["Train"]["properties"]["precision"]
    assert precision["enum"] == [form.value for form in Precision]
    samples = definitions["Dataset"]["properties"]["samples"]
    assert (samples["type"], samples["minimum"]) == ("integer", 1)


def test_a_file_that_extends_another_may_be_short() -> None:
    """Required sections are required of whole files only."""
    schema = scenario_schema()
    assert schema["required"] == ["schema"]
    assert schema["anyOf"] == [
        {"required": ["extends"]},
        {"required": ["hardware", "data", "train"]},
    ]


def test_services_have_a_schema_of_their_own() -> None:
    """It demands a mode, describes every key, and is closed as that of jobs is."""
    schema = service_schema()
    assert "mode" in schema["properties"]
    assert {"hardware", "model", "load"} < schema["properties"].keys()
    assert schema["anyOf"][0] == {"required": ["extends"]}
    assert all(part.get("additionalProperties") is not True for part in schema["$defs"].values())
    load = schema["$defs"]["LoadSection"]["properties"]
    assert all(node.get("description") or "$ref" in node for node in load.values())
