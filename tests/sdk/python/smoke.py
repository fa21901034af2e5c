"""What openapi-python-client generates, and the helper for streams, against a running server."""

import os
from collections.abc import Callable
from uuid import UUID, uuid4

from tidemark_client import AuthenticatedClient
from tidemark_client.api.memories import create_memories, delete_memory, get_memory, recall_memories, update_memory
from tidemark_client.api.messages import list_messages
from tidemark_client.api.sessions import create_session
from tidemark_client.api.turns import cancel_turn, create_turn
from tidemark_client.models import (
    AcceptedTurn,
    DoneEvent,
    Memory,
    MemoryPatch,
    MessageEvent,
    MessagePage,
    NewMemories,
    NewSession,
    NewTurn,
    NoFields,
    Problem,
    ReasoningEvent,
    RecallQuery,
    RecallResult,
    Session,
    Turn,
)
from tidemark_client.types import Unset
from tidemark_stream import Refusal, follow_turn

user = f"sdk-{uuid4()}"
client = AuthenticatedClient(
    base_url=os.environ["TIDEMARK_URL"], token=os.environ.get("TIDEMARK_KEY", "none"), headers={"X-Tidemark-User": user}
)


def refused(answer: object) -> Problem:
    assert isinstance(answer, Problem), answer
    return answer


# A conversation, made once however often it is asked for.
make: Callable[[], object] = lambda: create_session.sync(
    client=client, body=NewSession(title="Budget"), idempotency_key=user
)
session, again = make(), make()
assert isinstance(session, Session) and isinstance(again, Session) and session.id == again.id

# The scripted model answers so slowly that the connection can be cut in the middle.
question = "What is the budget? [[tokens=40 delay_ms=40]]"
turn = create_turn.sync(session.id, client=client, body=NewTurn(message=question))
assert isinstance(turn, AcceptedTurn), turn
seen: list[int] = []
text = ""
done: DoneEvent | None = None
for event in follow_turn(client, turn.turn_id):
    assert not isinstance(event, ReasoningEvent)
    seen.append(event.seq)
    if isinstance(event, MessageEvent):
        if not text:
            # Whoever runs this cuts the connection when it reads the line.
            print("cut", flush=True)
        text += event.token
    if isinstance(event, DoneEvent):
        done = event
assert done is not None and done.status.value == "completed", done
assert text == done.text
assert seen == list(range(1, len(seen) + 1)), "each event once, in order"

history = list_messages.sync(session.id, client=client)
assert isinstance(history, MessagePage), history
assert [message.role.value for message in history.items] == ["user", "assistant"]
assert history.items[1].content == done.text
over = cancel_turn.sync(turn.turn_id, client=client, body=NoFields())
assert isinstance(over, Turn) and over.status.value == "completed", "what is over cannot be cancelled"

# Memories: added, recalled, changed, forgotten.
memory = create_memories.sync(client=client, body=NewMemories(content="The archive closes at five on Fridays"))
assert isinstance(memory, Memory), memory


def recalled() -> list[UUID]:
    result = recall_memories.sync(client=client, body=RecallQuery(query="When does the archive close?", top_k=5))
    assert isinstance(result, RecallResult), result
    return [item.memory.id for item in result.items]


assert memory.id in recalled()
stale = refused(update_memory.sync(memory.id, client=client, body=MemoryPatch(pinned=True), if_match='"99"'))
assert stale.code == "stale_version"
pinned = update_memory.sync(memory.id, client=client, body=MemoryPatch(pinned=True, key=None))
assert isinstance(pinned, Memory) and pinned.pinned
assert delete_memory.sync_detailed(memory.id, client=client).status_code == 204
assert memory.id not in recalled()

# Problems.
assert refused(get_memory.sync(memory.id, client=client)).code == "not_found"
long = refused(create_session.sync(client=client, body=NewSession(title="x" * 201)))
assert long.status == 422 and not isinstance(long.errors, Unset) and long.errors[0].field == "title"
try:
    next(follow_turn(client, uuid4()))
    raise AssertionError("a turn that is none was followed")
except Refusal as refusal:
    assert refusal.problem.code == "not_found"
print("whole")
