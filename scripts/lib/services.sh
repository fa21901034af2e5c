# shellcheck shell=bash
# Throw-away servers for one test run. Each is a child of this shell, remembered by its process id and stopped on exit.

SERVICE_PIDS=()
SERVICES=
IN_MEMORY=

# What a data directory in memory may grow to, in MiB.
readonly IN_MEMORY_MIB=2048

services_directory() {
  [[ -z $SERVICES ]] || return 0
  SERVICES=$(mktemp -d "${TMPDIR:-/tmp}/tidemark-test.XXXXXX")
  chmod 755 "$SERVICES"
  if ! unprivileged test -x "$SERVICES"; then
    rmdir "$SERVICES"
    SERVICES=$(mktemp -d /tmp/tidemark-test.XXXXXX)
    chmod 755 "$SERVICES"
  fi
}

stop_services() {
  local pid
  [[ -z $RUNNING ]] || stop_process "$RUNNING" TERM
  for pid in "${SERVICE_PIDS[@]}"; do
    # PostgreSQL's fast shutdown; the model server ends at any signal.
    stop_process "$pid" INT
  done
  SERVICE_PIDS=()
  [[ -z $SERVICES ]] || rm -rf "$SERVICES"
  [[ -z $IN_MEMORY ]] || rm -rf "$IN_MEMORY"
}

# in_memory_directory: leaves in IN_MEMORY a directory for what need not reach a disk, if there is memory to spare; otherwise nothing. Tests
# make and drop databases of a thousand files each, which a disk's file system takes longer for than the tests take.
in_memory_directory() {
  local available
  [[ -z $IN_MEMORY && -d /dev/shm && -w /dev/shm && -r /proc/meminfo ]] || return 0
  available=$(df -Pm /dev/shm | awk 'NR == 2 { print $4 }')
  ((available >= IN_MEMORY_MIB)) || return 0
  available=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
  # Builds and tests need some themselves.
  ((available >= 4 * IN_MEMORY_MIB)) || return 0
  IN_MEMORY=$(mktemp -d /dev/shm/tidemark-test.XXXXXX)
  chmod 755 "$IN_MEMORY"
}

stop_services_on_exit() {
  trap stop_services EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
}

# start_postgres NAME PARENT SETTING...: a server of its own with its data in that directory, or beside the logs if it is empty. Its address is
# left in POSTGRES_URL.
start_postgres() {
  local name=$1 parent=$2 attempt
  shift 2
  services_directory
  local data=${parent:-$SERVICES}/$name log=$SERVICES/$name.log
  mkdir "$data"
  is_root && chown "$TEST_USER" "$data"
  # The built-in locale: with C, pg_trgm finds nothing in Chinese.
  (cd / && unprivileged "$POSTGRES_BIN/initdb" --pgdata "$data" --username postgres --auth trust --encoding UTF8 \
    --locale C.UTF-8 --locale-provider builtin --no-instructions) >"$log" 2>&1 || { cat "$log" >&2; die "initdb failed"; }
  for attempt in 1 2 3 4 5; do
    if launch_postgres "$data" "$log" "$@"; then
      note "PostgreSQL ($name): $POSTGRES_URL"
      return
    fi
    note "PostgreSQL ($name) did not start, attempt $attempt"
  done
  cat "$log" >&2
  die "PostgreSQL did not start"
}

launch_postgres() {
  local data=$1 log=$2 port pid setting options=() tries
  shift 2
  port=$("$PYTHON" "$ROOT/scripts/lib/free_port.py")
  for setting in "$@"; do
    options+=(-c "$setting")
  done
  (cd / && exec_unprivileged "$POSTGRES_BIN/postgres" -D "$data" -p "$port" -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories= "${options[@]}") </dev/null >>"$log" 2>&1 &
  pid=$!
  SERVICE_PIDS+=("$pid")
  for ((tries = 0; tries < 300; tries++)); do
    kill -0 "$pid" 2>/dev/null || return 1
    if "$POSTGRES_BIN/pg_isready" --quiet --host 127.0.0.1 --port "$port" && kill -0 "$pid" 2>/dev/null; then
      POSTGRES_URL=postgres://postgres@127.0.0.1:$port/postgres
      return 0
    fi
    sleep 0.1
  done
  stop_process "$pid" INT
  return 1
}

start_postgres_servers() {
  # Nothing here survives the run, so nothing needs to reach the disk.
  in_memory_directory
  start_postgres ordinary "$IN_MEMORY" max_connections=300 shared_buffers=256MB fsync=off synchronous_commit=off \
    full_page_writes=off wal_level=minimal max_wal_senders=0 max_wal_size=1GB
  export TIDEMARK_TEST_POSTGRES_URL=$POSTGRES_URL
  # Where crashes are tested, durability is PostgreSQL's default.
  start_postgres durable "" max_connections=300
  export TIDEMARK_TEST_POSTGRES_DURABLE_URL=$POSTGRES_URL
}

start_redis() {
  services_directory
  local port pid log=$SERVICES/redis.log tries
  port=$("$PYTHON" "$ROOT/scripts/lib/free_port.py")
  : >"$log"
  (cd "$SERVICES" && exec setpriv --pdeathsig INT "$TIDEMARK_TEST_REDIS_SERVER" --port "$port" --bind 127.0.0.1 \
    --save '' --appendonly no) </dev/null >"$log" 2>&1 &
  pid=$!
  SERVICE_PIDS+=("$pid")
  for ((tries = 0; tries < 100; tries++)); do
    kill -0 "$pid" 2>/dev/null || break
    if grep -q 'Ready to accept connections' "$log"; then
      export TIDEMARK_TEST_REDIS_URL=redis://127.0.0.1:$port
      note "Redis: $TIDEMARK_TEST_REDIS_URL"
      return
    fi
    sleep 0.1
  done
  cat "$log" >&2
  die "Redis did not start"
}

start_real_model() {
  services_directory
  local port pid log=$SERVICES/model.log tries
  port=$("$PYTHON" "$ROOT/scripts/lib/free_port.py")
  : >"$log"
  PYTHONPATH=$MODEL_TOOLS setpriv --pdeathsig TERM "$PYTHON" "$ROOT/scripts/lib/llama_server.py" "$MODEL_TOOLS" "$port" \
    </dev/null >"$log" 2>&1 &
  pid=$!
  SERVICE_PIDS+=("$pid")
  for ((tries = 0; tries < 600; tries++)); do
    kill -0 "$pid" 2>/dev/null || break
    if grep -q '^serving ' "$log"; then
      export TIDEMARK_TEST_REAL_MODEL_URL=http://127.0.0.1:$port/v1
      note "llama.cpp: $TIDEMARK_TEST_REAL_MODEL_URL"
      return
    fi
    sleep 0.1
  done
  cat "$log" >&2
  die "the model server did not start"
}
