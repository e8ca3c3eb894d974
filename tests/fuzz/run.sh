#!/usr/bin/env bash
# Builds every fuzz target and runs each for so many seconds; its corpus is build/fuzz/corpus, what it finds comes to build/fuzz.
#   tests/fuzz/run.sh [SECONDS] [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-600}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=($(ls tests/fuzz/*_fuzzer.cpp | xargs -n1 basename | sed 's/_fuzzer\.cpp$//'))
cmake --preset fuzz
ninja -C build/fuzz "${targets[@]/%/_fuzzer}"
make all
tests/fuzz/seeds.sh "$PWD/build/release/tombolo" build/fuzz/seeds
for name in "${targets[@]}"; do
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus"
  echo "== $name, $seconds s"
  "$(find build/fuzz -name "${name}_fuzzer" -type f -perm -u+x | head -1)" "$corpus" "build/fuzz/seeds/$name" \
    -artifact_prefix=build/fuzz/ -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3000 -print_final_stats=1
done
