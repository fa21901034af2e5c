# shellcheck shell=bash
# Headings, timings and failure messages of the scripts.

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

note() {
  printf '    %s\n' "$*"
}

# step TITLE COMMAND...: run the command under a heading, tell how long it took, stop the script if it fails.
step() {
  local title=$1 began=$SECONDS code=0
  shift
  printf '\n==> %s\n' "$title"
  run "$@" || code=$?
  if ((code != 0)); then
    printf '\nFAILED: %s (exit code %d, after %d s)\n' "$title" "$code" "$((SECONDS - began))" >&2
    exit "$code"
  fi
  printf '    %s: %d s\n' "$title" "$((SECONDS - began))"
}

# The foreground command's process id, so that a trap can end it.
RUNNING=

# bash runs a trap only when its foreground command has ended, but at once while it waits: so commands run in the
# background and are waited for.
run() {
  local code=0
  "$@" </dev/null &
  RUNNING=$!
  wait "$RUNNING" || code=$?
  RUNNING=
  return "$code"
}

# stop_process PID SIGNAL: end a process that this script started, waiting up to 20 s before it is killed.
stop_process() {
  local pid=$1 signal=$2 tries
  kill -s "$signal" "$pid" 2>/dev/null || return 0
  for ((tries = 0; tries < 200; tries++)); do
    # A zombie has ended; only its parent has not yet asked.
    case "$(ps -o state= -p "$pid" 2>/dev/null || true)" in
      '' | Z*) wait "$pid" 2>/dev/null || true && return 0 ;;
    esac
    sleep 0.1
  done
  kill -s KILL "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
}
