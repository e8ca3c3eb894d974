#!/usr/bin/env bash
# Runs every operator in every version with every type, and holds docs/coverage.md to what was run.
#   tests/coverage/run.sh TOMBOLO          UPDATE=1 writes the page anew
set -euo pipefail
tombolo=$(realpath "${1:?path of the tombolo binary}")
page=$(cd "$(dirname "$0")/../.." && pwd)/docs/coverage.md
made=$(mktemp)
trap 'rm -f "$made"' EXIT
status=0
"$tombolo" ops --coverage --no-progress > "$made" || status=$?
grep -m1 'types of type variables' "$made"
if [ "$status" -ne 0 ]; then
  grep -F '**not:' "$made" | head -40
  exit 1
fi
if [ -n "${UPDATE:-}" ]; then cp "$made" "$page"; fi
diff "$page" "$made" > /dev/null || { echo "docs/coverage.md is not what runs: UPDATE=1 $0 $tombolo"; exit 1; }
