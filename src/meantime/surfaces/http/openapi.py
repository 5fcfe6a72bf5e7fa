"""/v1/openapi.json, made from the table of routes and its structs."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias, cast

import msgspec

from .responses import CORS
from .routes import ROUTES
from .routing import BATCH, SERVER, TASK, THREAD, TOKEN, TURN, AnyRoute, by_path
from .schemas import Params
from .task_schemas import Error

Json: TypeAlias = dict[str, Any]
_PREFIX = "#/components/schemas/"
_ORIGIN = {"Access-Control-Allow-Origin": {"schema": {"type": "string", "const": "*"}}}
ABOUT = (
    "Background tasks: hand them off, read them, follow them, be told of each ending once. Seed 001's API; "
    "an operation beyond it says so, and every POST is. A POST needs a token (or the unix socket), "
    "Content-Type: application/json, and no Origin but our own; the body is a JSON object of at most "
    "1,000,000 bytes and 64 levels. Every answer, refusals included, carries "
    + ", ".join(f"{name.decode().title()}: {value.decode()}" for name, value in CORS)
    + "; OPTIONS answers 204 everywhere."
)
BEARER = (
    "Also as a path: /~<token>/v1/… Programs of the same user need no token to read, unless auth is strict."
)
ERRORS = {
    400: ("BadRequest", "A parameter or the body is wrong; the error names it."),
    401: ("Unauthorized", "A token is needed, or it is wrong."),
    403: (
        "Forbidden",
        "A page of another origin cannot write; a thread's token is not for everything; on the unix socket, "
        "another user.",
    ),
    404: ("NotFound", "There is no such thing, or not for this caller."),
    409: (
        "Conflict",
        "The call is fine, the answer is no: see code. A prefix that fits several tasks has candidates, a "
        "duplicate has existing, a lost lease has notices, a result that is not there has the task.",
    ),
    410: ("Gone", "A code that was used, or has expired."),
    413: ("TooBig", "A body has at most 1,000,000 bytes."),
    414: ("TooLong", "The URL is too long."),
    415: ("NotJson", "A body is application/json."),
    421: ("WrongHost", "The Host header names somebody else."),
    429: ("LimitReached", "Too many run: running, limit. For a code: too many wrong ones were tried."),
    503: ("Busy", "64 streams are open, or 256 requests wait, or the server is closing."),
    507: ("Degraded", "The disk is full: nothing new is accepted."),
}
SUBJECTS = {"Task": TASK, "Thread": THREAD, "Batch": BATCH, "Turn": TURN, "Server": SERVER, "Token": TOKEN}


@cache
def document() -> bytes:
    return msgspec.json.encode(description())


def description() -> Json:
    schemas = Schemas()
    paths = {
        path: {route.method.lower(): _operation(route, schemas) for route in routes}
        for path, routes in by_path(ROUTES).items()
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Meantime", "version": "1", "description": ABOUT},
        "servers": [{"url": "http://127.0.0.1:5165"}],
        "security": [{}, {"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "description": BEARER}},
            "parameters": {name: _subject(one.name, one.description) for name, one in SUBJECTS.items()},
            "responses": {name: _error(text, schemas) for name, text in ERRORS.values()},
            "schemas": schemas.components,
        },
    }


class Schemas:
    """msgspec's schemas of all structs, in the words of the API: `WireTask` is Task there."""

    def __init__(self) -> None:
        given = (kind for one in ROUTES for kind in (one.params, one.body, one.answer, one.other))
        types: list[Any] = [Error, *dict.fromkeys(kind for kind in given if kind is not None)]
        made, found = msgspec.json.schema_components(types, ref_template=f"{_PREFIX}{{name}}")
        self._enums = {name: one for name, one in found.items() if "enum" in one}
        self._params = {kind.__name__ for kind in Params.__subclasses__()}
        self._found = found
        self._by_type = list(zip(types, made, strict=True))
        self.components = {
            _name(name): self._tidy(one)
            for name, one in found.items()
            if name not in self._enums and name not in self._params
        }

    def of(self, kind: Any) -> Json:
        return self._tidy(next(schema for known, schema in self._by_type if known == kind))

    def params(self, kind: type[Params]) -> list[Json]:
        """Each is optional; a list is one text, with commas."""
        found: list[Json] = []
        for name, one in self._found[kind.__name__]["properties"].items():
            schema = self._tidy(one)
            described = {"description": schema.pop("description")} if "description" in schema else {}
            found.append({"name": name, "in": "query", **described, "schema": _as_text(schema)})
        return found

    def _tidy(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [self._tidy(one) for one in cast("list[Any]", schema)]
        if not isinstance(schema, dict):
            return schema
        given = cast(Json, schema)
        found: Json = {}
        for name, value in given.items():
            if name == "$ref":
                named = value.removeprefix(_PREFIX)
                enum = self._enums.get(named)
                found |= {"$ref": _PREFIX + _name(named)} if enum is None else {"enum": enum["enum"]}
            elif name == "properties":
                found[name] = {key: self._tidy(one) for key, one in value.items()}
            elif name == "description":
                found[name] = " ".join(value.split())
            elif name != "title" and not (name == "default" and value is None):
                found[name] = self._tidy(value)
        if "enum" in found:
            found["type"] = "string"
        return found


def _name(struct: str) -> str:
    return struct.removeprefix("Wire")


def _as_text(schema: Json) -> Json:
    """The schema of a query parameter: it has no null, and its list is written with commas."""
    some = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if some:
        rest = {name: value for name, value in schema.items() if name != "anyOf"}
        return {**some[0], **rest} if len(some) == 1 else {"anyOf": some, **rest}
    if schema.get("type") != "array":
        return schema
    word = "|".join(schema["items"]["enum"])
    found: Json = {"type": "string", "pattern": f"^({word})(,({word}))*$"}
    if schema.get("default"):
        found["default"] = ",".join(schema["default"])
    return found


def _operation(route: AnyRoute, schemas: Schemas) -> Json:
    note = route.note if route.seed or route.method == "POST" else f"Beyond the seed. {route.note}".strip()
    found: Json = {"operationId": route.operation, "summary": route.summary}
    if note:
        found["description"] = note
    if route.access.open:
        found["security"] = [{}]
    elif route.access.writes:
        found["security"] = [{"bearer": []}]
    found["parameters"] = _parameters(route, schemas)
    if route.body is not None:
        required = any(field.required for field in msgspec.structs.fields(route.body))
        content = {"application/json": {"schema": schemas.of(route.body)}}
        found["requestBody"] = {"required": required, "content": content}
    found["responses"] = _answers(route, schemas) | {
        str(status): {"$ref": f"#/components/responses/{ERRORS[status][0]}"} for status in errors_of(route)
    }
    return found


def _parameters(route: AnyRoute, schemas: Schemas) -> list[Json]:
    subject = [
        {"$ref": f"#/components/parameters/{name}"} for name, one in SUBJECTS.items() if one is route.subject
    ]
    params = [] if route.params is None else schemas.params(route.params)
    headers = [{"name": name, "in": "header", "schema": {"type": "string"}} for name in route.headers]
    return [*subject, *params, *headers]


def _answers(route: AnyRoute, schemas: Schemas) -> Json:
    found: Json = {}
    content: Json = {kind: {"schema": {"type": "string"}} for kind in route.media}
    if route.answer is not None:
        schema = schemas.of(route.answer)
        if route.other is not None:
            schema = {"anyOf": [schema, schemas.of(route.other)]}
        content = {"application/json": {"schema": schema}, **content}
    if content:
        location = {"Location": {"schema": {"type": "string"}}} if route.location else {}
        headers = {**_ORIGIN, **location}
        found[str(route.status)] = {"description": route.gives, "headers": headers, "content": content}
    if route.empty:
        found["204"] = {"description": route.empty, "headers": _ORIGIN}
    return found


def errors_of(route: AnyRoute) -> list[int]:
    """The errors of its access, its path and its body, and its own."""
    found = {400, 403, 414, 421, 503, *route.errors}
    if not route.access.open:
        found.add(401)
    if route.access.writes:
        found |= {404, 409, 413, 415}
    if route.subject is not None:
        found.add(404)
    if route.subject is TASK:
        found.add(409)  # a prefix may fit several
    return sorted(found)


def _subject(name: str, text: str) -> Json:
    schema = {"type": "string", "minLength": 1}
    return {"name": name, "in": "path", "required": True, "description": text, "schema": schema}


def _error(text: str, schemas: Schemas) -> Json:
    return {"description": text, "content": {"application/json": {"schema": schemas.of(Error)}}}
