# shellcheck shell=bash
# What the machine offers: Rust, Python, Node, privileges, and a user that may run PostgreSQL.

readonly TEST_USER=${TIDEMARK_TEST_USER:-tidemark-test}
# Some tests start a PostgreSQL of their own.
export TIDEMARK_TEST_USER=$TEST_USER

prepare_environment() {
  umask 022
  # cargo, pip and npm keep their caches there.
  if [[ -z ${HOME:-} ]]; then
    HOME=$(getent passwd "$(id -u)" | cut -d: -f6)
    export HOME
  fi
  export CARGO_NET_RETRY=${CARGO_NET_RETRY:-10}
  find_rust
  find_python
  find_node
}

# A cargo that belongs to rustup looks for its toolchains below HOME. With another HOME it finds none, although they
# lie beside the cargo that was called.
find_rust() {
  local cargo
  cargo=$(command -v cargo) || die "cargo is not on the PATH; Rust 1.95 or later is needed"
  if ! cargo --version >/dev/null 2>&1 && [[ -z ${RUSTUP_HOME:-} ]]; then
    local beside
    beside=$(dirname "$(dirname "$(dirname "$cargo")")")/.rustup
    if [[ -d $beside ]]; then
      export RUSTUP_HOME=$beside
      note "rustup's toolchains: $RUSTUP_HOME"
    fi
  fi
  cargo --version || die "cargo does not run"
  at_least "$(rustc --version | cut -d' ' -f2)" 1.95.0 || die "Rust 1.95 or later is needed, found $(rustc --version)"
  cargo fmt --version >/dev/null 2>&1 || die "rustfmt is needed (rustup component add rustfmt)"
  cargo clippy --version >/dev/null 2>&1 || die "clippy is needed (rustup component add clippy)"
}

# The interpreter must be one for which the manifest pins wheels.
find_python() {
  local candidate
  for candidate in python3 python3.13 python3.12 python3.11 /usr/bin/python3; do
    if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' >/dev/null 2>&1 &&
      "$candidate" -m pip --version >/dev/null 2>&1; then
      PYTHON=$("$candidate" -c 'import sys; print(sys.executable)')
      readonly PYTHON
      export TIDEMARK_TEST_PYTHON=$PYTHON
      return
    fi
  done
  die "Python 3.11, 3.12 or 3.13 with pip is needed (apt-get install python3-pip)"
}

find_node() {
  if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    die "Node.js 20.19 or later with npm is needed"
  fi
  at_least "$(node --version | tr -d v)" 20.19.0 || die "Node.js 20.19 or later is needed, found $(node --version)"
}

# at_least VERSION MINIMUM
at_least() {
  [[ $(printf '%s\n%s\n' "${1%%-*}" "$2" | sort -V | head -n 1) == "$2" ]]
}

is_root() {
  [[ $(id -u) == 0 ]]
}

as_root() {
  if is_root; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo -n "$@"
  else
    return 126
  fi
}

# PostgreSQL refuses to run as root, so root makes a user without rights for it.
ensure_test_user() {
  is_root || return 0
  getent passwd "$TEST_USER" >/dev/null && return
  note "creating the system user $TEST_USER"
  useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$TEST_USER" ||
    die "cannot create the system user $TEST_USER; name an existing one in TIDEMARK_TEST_USER"
}

# unprivileged COMMAND...: replace this process by the command, run by somebody who is not root; it is told to stop
# when the calling shell dies, even by SIGKILL.
exec_unprivileged() {
  if is_root; then
    exec setpriv --reuid="$TEST_USER" --regid="$(id -g "$TEST_USER")" --clear-groups --pdeathsig INT "$@"
  fi
  exec setpriv --pdeathsig INT "$@"
}

unprivileged() {
  (exec_unprivileged "$@")
}
