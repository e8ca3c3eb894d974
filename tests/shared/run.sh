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
for part in v1.22.0/{simple,pytorch-converted,pytorch-operator,light,node} node_history; do
  run "$build/tombolo" conformance "$suite/$part" --no-progress
done
run "$build/tombolo" conformance "$shared/fixtures/cases/keras-dev" --no-progress
exit "$failed"
