#!/usr/bin/env bash
# Tests against the official conformance cases and the real framework files of the shared folder, which is
# not part of the repository: TOMBOLO_SHARED names it (default ../shared). Without it this test says so and
# is skipped (exit 77).
#   tests/shared/run.sh BUILD_DIR
set -euo pipefail
build=$(realpath "${1:?build folder}")
root=$(cd "$(dirname "$0")/../.." && pwd)
shared=${TOMBOLO_SHARED:-$root/../shared}
archive=$shared/conformance/onnx-node-cases.tar.zst
if [ ! -f "$archive" ]; then
  echo "SKIPPED: no conformance suite at $archive; set TOMBOLO_SHARED to the folder that holds it"
  exit 77
fi
suite=$build/conformance
if [ ! -f "$suite/.complete" ] || [ "$archive" -nt "$suite/.complete" ]; then
  rm -rf "$suite" && mkdir -p "$suite"
  zstd -dcq "$archive" | tar -xf - -C "$suite"
  touch "$suite/.complete"
fi
export TOMBOLO_CONFORMANCE=$suite
failed=0
run() { echo "\$ $*"; "$@" || failed=1; }

run "$build/tests/tombolo_unit" --gtest_brief=1 --gtest_filter='*Conformance*:TensorFile*'
for part in simple pytorch-converted pytorch-operator light; do
  run "$build/tombolo" conformance "$suite/v1.22.0/$part" --no-progress
done
# The node cases: what fails must be a row of known_failures.txt, and every row must still fail.
"$build/tombolo" conformance "$suite/v1.22.0/node" "$suite/node_history" --no-progress > "$build/node_cases.txt" || true
tail -1 "$build/node_cases.txt"
sed -n 's/^failed  \([^ ]*\).*/\1/p' "$build/node_cases.txt" | sort > "$build/node_failures.txt"
grep -vE '^(#|$)' "$root/tests/shared/known_failures.txt" | awk '{print $1}' | sort > "$build/node_known.txt"
if ! diff "$build/node_known.txt" "$build/node_failures.txt" > "$build/node_difference.txt"; then
  echo "node cases: < passes now, take its row out of tests/shared/known_failures.txt; > fails and has no row:"
  cat "$build/node_difference.txt"
  failed=1
fi
run "$build/tombolo" conformance "$shared/fixtures/cases/keras-dev" --no-progress
exit "$failed"
