# shellcheck shell=bash
# The steps of a run, in the order in which they fail fastest.

check_sources() {
  local bin=$PYTHON_TOOLS/bin
  step 'Formatting' cargo fmt --all --check
  step 'Spelling' "$bin/typos"
  step 'Dependencies: bans, licences, sources' "$bin/cargo-deny" --log-level error --all-features --locked check bans licenses sources
  step 'Unused dependencies' "$bin/cargo-shear"
  step 'Lints' cargo clippy --workspace --all-targets --locked -- -D warnings
}

# Everything in one build: with the binary alone, cargo would unify the features of fewer crates and build most
# dependencies a second time for the tests.
build() {
  step 'Build' cargo build --workspace --all-targets --locked
  local target
  target=$(cargo metadata --no-deps --locked --format-version 1 | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
  export TIDEMARK_BIN=$target/debug/tidemark
  [[ -x $TIDEMARK_BIN ]] || die "$TIDEMARK_BIN was not built"
}

test_documentation() {
  step 'Documentation tests' cargo test --doc --workspace --locked
}

# run_tests TITLE ARGUMENT...: the last step, so that the output ends with the summary of the tests.
run_tests() {
  local title=$1
  shift
  printf '\n==> %s\n' "$title"
  run "${NEXTEST[@]}" run --locked "$@"
}
