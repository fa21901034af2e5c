"""Follows a turn to its end, however often the connection is cut: every event once, in its order.

For the client that openapi-python-client generates, which has no streams of its own:

    openapi-python-client generate --url http://127.0.0.1:8080/openapi.json --meta none --output-path tidemark_client
"""

import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

import httpx
from tidemark_client import AuthenticatedClient, Client
from tidemark_client.models import (
    DoneEvent,
    MessageEvent,
    Problem,
    RecallEvent,
    ReasoningEvent,
    ResetEvent,
    SnapshotEvent,
    StartEvent,
    ToolEvent,
)

TurnEvent = (
    StartEvent | RecallEvent | MessageEvent | ReasoningEvent | ToolEvent | ResetEvent | SnapshotEvent | DoneEvent
)

EVENTS: dict[str, Any] = {
    "start": StartEvent,
    "recall": RecallEvent,
    "message": MessageEvent,
    "reasoning": ReasoningEvent,
    "tool": ToolEvent,
    "reset": ResetEvent,
    "snapshot": SnapshotEvent,
    "done": DoneEvent,
}

# A heartbeat comes every 15 seconds: when nothing comes for so long, the connection is dead.
TIMEOUT = httpx.Timeout(10, read=45)


class Refusal(Exception):
    """The server said no, and will say so again."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


class Frame(NamedTuple):
    """One block of a stream of server-sent events."""

    id: str | None = None
    event: str | None = None
    data: str | None = None
    retry: str | None = None


def follow_turn(client: Client | AuthenticatedClient, turn_id: UUID, attempts: int = 10) -> Iterator[TurnEvent]:
    """The events of a turn, up to `done`. So many attempts in a row may fail. Types that are not known here are passed over."""
    http = client.get_httpx_client()
    headers: dict[str, str] = {}
    wait, failed = 1.0, 0
    while True:
        try:
            with http.stream("GET", f"/v1/turns/{turn_id}/events", headers=headers, timeout=TIMEOUT) as response:
                if response.status_code == 204:
                    return  # There is nothing behind the last event that was seen.
                refuse(response)
                for frame in frames(response.iter_lines()):
                    if frame.retry:
                        wait = int(frame.retry) / 1000
                    if not frame.data:
                        continue
                    failed = 0
                    # Where to go on, should the connection be cut. Reasoning has no id and is never told again.
                    if frame.id:
                        headers["Last-Event-ID"] = frame.id
                    kind = EVENTS.get(frame.event or "")
                    if kind is None:
                        continue
                    event: TurnEvent = kind.from_dict(json.loads(frame.data))
                    yield event
                    if isinstance(event, DoneEvent):
                        return
            # Without `done` the turn goes on: the server is going down, or a proxy has had enough.
        except httpx.HTTPError:
            failed += 1
            if failed >= attempts:
                raise
        time.sleep(wait)


def refuse(response: httpx.Response) -> None:
    """Raises what the response is, if it is a refusal."""
    if response.status_code == 429 or response.status_code >= 500:
        response.raise_for_status()
    if response.is_error:
        raise Refusal(Problem.from_dict(json.loads(response.read())))


def frames(lines: Iterator[str]) -> Iterator[Frame]:
    """The blocks of a stream. A block that is cut off is none."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line:
            yield Frame(**fields)
            fields = {}
            continue
        name, _, text = line.partition(":")
        if name in Frame._fields:
            text = text.removeprefix(" ")
            fields[name] = f"{fields[name]}\n{text}" if name == "data" and name in fields else text
