#!/usr/bin/env bash
# A conversation with curl alone: examples/curl.sh "What is the budget?"
set -euo pipefail

base=${TIDEMARK_URL:-http://127.0.0.1:8080}
question=${1:-What is the budget?}
json=(-H 'Content-Type: application/json' -H 'X-Tidemark-User: ada')
# Without --fail a refusal is printed: a problem document that says what is wrong.
call() { curl --silent --show-error --fail-with-body "${json[@]}" "$@"; }
id_of() { sed -E 's/.*"id":"([^"]+)".*/\1/'; }

# What is to be known beforehand.
call "$base/v1/memories" -d '{"content": "The project'\''s budget is 400k", "kind": "fact"}' >/dev/null

# Ask and stream the answer. The request id makes it safe to ask again: the same turn is told from its start.
request=$(cat /proc/sys/kernel/random/uuid)
session=$(call "$base/v1/sessions" -d '{"title": "Budget"}' | id_of)
call --no-buffer --get "$base/v1/chat/stream" \
  --data-urlencode "query=$question" -d "session_id=$session" -d "request_id=$request"

# The same answer at once, for who does not want to stream.
call "$base/v1/sessions/$session/turns" -H 'Prefer: wait=60' -d '{"message": "And who said so?"}'
echo

# What is remembered, and why it is recalled.
call "$base/v1/memories/recall" -d '{"query": "budget", "top_k": 3, "explain": true}'
echo
