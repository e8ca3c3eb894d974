#!/usr/bin/env bash
# Builds every fuzz target and runs each for so many seconds, with the official cases as seeds where they are.
#   tests/fuzz/run.sh [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-600}
cmake --preset fuzz
ninja -C build/fuzz $(ls tests/fuzz/*_fuzzer.cpp | xargs -n1 basename | sed 's/\.cpp$//')
for source in tests/fuzz/*_fuzzer.cpp; do
  name=$(basename "$source" .cpp)
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus"
  echo "== $name, $seconds s"
  "$(find build/fuzz -name "$name" -type f -perm -u+x | head -1)" "$corpus" -max_total_time="$seconds" -timeout=20 \
    -rss_limit_mb=3000 -print_final_stats=1
done
