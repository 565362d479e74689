"""The page that explains the service, made from its OpenAPI schema; it asks nothing of outside hosts."""

from typing import Any

from pydantic import BaseModel

from locus.pages.writer import render


def openapi_page(schema: dict[str, Any], parts: dict[str, type[BaseModel]]) -> str:
    """All paths of a schema, and the fields of what they take as JSON."""
    fields = {name: _fields(part.model_json_schema(), {}) for name, part in parts.items()}
    return render("service", paths=_paths(schema), parts_of=fields)


def _paths(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """What each path takes, and what it answers."""
    rows = []
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {})
            taken = _fields(next(iter(content.values()), {}).get("schema", {}), schema)
            answer = operation["responses"]["200"].get("content", {}).get("application/json", {}).get("schema", {})
            about = operation.get("description", "")
            rows.append(
                {
                    "path": path,
                    "method": method.upper(),
                    "about": about,
                    "takes": taken,
                    "gives": _fields(answer, schema),
                }
            )
    return rows


def _fields(part: dict[str, Any], schema: dict[str, Any]) -> list[tuple[str, str]]:
    """Names of fields, and what is said about them."""
    if "$ref" in part:
        part = schema["components"]["schemas"][part["$ref"].rsplit("/", 1)[1]]
    wanted = part.get("required", [])
    found = []
    for name, of_field in part.get("properties", {}).items():
        default = "" if name in wanted or of_field.get("default") is None else f"By default {of_field['default']}."
        optional = "Optional." if name not in wanted and not default else default
        found.append((name, " ".join(filter(None, [of_field.get("description", ""), optional]))))
    return found
