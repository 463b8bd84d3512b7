"""The interface as a page without script, made from its OpenAPI description."""

from __future__ import annotations

from html import escape
from typing import Any

_HEAD = '<!doctype html><html lang="en"><meta charset="utf-8"><title>bilex workbench: REST interface</title>'


def documentation(described: dict[str, Any]) -> str:
    """A page that lists every address with its parameters.

    Args:
        described: The OpenAPI description, which is at `/openapi.json` too.
    """
    schemas = described.get("components", {}).get("schemas", {})
    parts = [
        _section(method, path, one, schemas)
        for path, ways in described["paths"].items()
        for method, one in ways.items()
    ]
    intro = f"<h1>REST interface</h1><p>{escape(described['info']['description'])} "
    link = 'As data: <a href="/openapi.json">openapi.json</a>.</p>'
    return f"{_HEAD}<main>{intro}{link}{''.join(parts)}</main></html>"


def _section(method: str, path: str, one: dict[str, Any], schemas: dict[str, Any]) -> str:
    text = str(one.get("description") or one.get("summary") or "")
    items = [_item(p["name"], p.get("required", False), "query") for p in one.get("parameters", [])]
    body = one.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    schema = schemas.get(str(body.get("$ref", "")).rsplit("/", 1)[-1], {})
    needed = schema.get("required", [])
    items += [_item(name, name in needed, "body") for name in schema.get("properties", {})]
    shown = f"<ul>{''.join(items)}</ul>" if items else ""
    title = f"<h2><code>{escape(method.upper())} {escape(path)}</code></h2>"
    return f"<section>{title}<p>{escape(text)}</p>{shown}</section>"


def _item(name: str, needed: bool, where: str) -> str:
    return f"<li><code>{escape(name)}</code> ({where}{', needed' if needed else ''})</li>"
