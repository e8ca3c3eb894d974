#!/usr/bin/env bash
# The node cases of the newest official package (opset 28), which computes them when they are loaded: made by
# tools/oracle_onnx_cases.py in a throw-away Python environment, once a build folder. Without Python or a
# network this test says so and is skipped (exit 77). ONNX_PYTHON names an interpreter that has the package.
#   tests/official/run.sh BUILD_DIR
set -euo pipefail
build=$(realpath "${1:?build folder}")
root=$(cd "$(dirname "$0")/../.." && pwd)
cases=$build/onnx-cases
skip() { echo "SKIPPED: $1"; exit 77; }

if [ ! -f "$cases/.complete" ]; then
  python=${ONNX_PYTHON:-$build/onnx-venv/bin/python}
  if ! "$python" -c 'import onnx; assert onnx.__version__ == "1.23.2"' 2> /dev/null; then
    command -v python3 > /dev/null || skip "no python3 to make the official cases with"
    rm -rf "$build/onnx-venv"
    python3 -m venv "$build/onnx-venv" > /dev/null 2>&1 || skip "python3 has no venv module"
    python=$build/onnx-venv/bin/python
    timeout 300 "$python" -m pip -q install --retries 0 onnx==1.23.2 > "$build/onnx-venv/log" 2>&1 ||
      skip "the official package cannot be installed (see $build/onnx-venv/log): no network, or a Python that is too old"
  fi
  "$python" -W ignore "$root/tools/oracle_onnx_cases.py" "$build/tombolo" "$cases"
else
  "$build/tombolo" conformance "$cases/node" --no-progress
fi
