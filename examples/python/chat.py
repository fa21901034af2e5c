"""A conversation: generate the client as `tidemark_stream.py` says, then `python chat.py "What is the budget?"`."""

import os
import sys
from uuid import uuid4

from tidemark_client import AuthenticatedClient
from tidemark_client.api.memories import create_memories
from tidemark_client.api.sessions import create_session
from tidemark_client.api.turns import create_turn
from tidemark_client.models import AcceptedTurn, DoneEvent, MessageEvent, NewMemories, NewSession, NewTurn, RecallEvent, Session
from tidemark_stream import follow_turn

question = sys.argv[1] if len(sys.argv) > 1 else "What is the budget?"
client = AuthenticatedClient(
    base_url=os.environ.get("TIDEMARK_URL", "http://127.0.0.1:8080"),
    token=os.environ.get("TIDEMARK_KEY", "none"),  # A server on your own machine asks for none.
    headers={"X-Tidemark-User": "ada"},
)

# What is to be known beforehand.
create_memories.sync(client=client, body=NewMemories(content="The project's budget is 400k"))

session = create_session.sync(client=client, body=NewSession(title="Budget"))
if not isinstance(session, Session):
    sys.exit(f"refused: {session}")  # Every refusal is a problem document.

# The key makes it safe to send again: the same question is never asked twice.
turn = create_turn.sync(session.id, client=client, body=NewTurn(message=question), idempotency_key=str(uuid4()))
if not isinstance(turn, AcceptedTurn):
    sys.exit(f"refused: {turn}")

for event in follow_turn(client, turn.turn_id):
    if isinstance(event, RecallEvent):
        for memory in event.memories:
            print(f"[remembered] {memory.content}")
    if isinstance(event, MessageEvent):
        print(event.token, end="", flush=True)
    if isinstance(event, DoneEvent):
        print(f"\n[{event.status.value}]")
