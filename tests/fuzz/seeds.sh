#!/usr/bin/env bash
# Fills FOLDER with small seeds for each fuzz target, from the cases of the tree.
#   tests/fuzz/seeds.sh TOMBOLO FOLDER
set -euo pipefail
tombolo=$1 out=$2
cd "$(dirname "$0")/../.."
mkdir -p "$out"/{onnx,text,json,keras,checkpoint,pt2,script,aten}
copy() {  # TARGET FILE NAME: small files only
  [ "$(stat -c %s "$2")" -gt 65536 ] || cp "$2" "$out/$1/$3"
}
for model in tests/keras/cases/*/model.* examples/digits/digits.*; do
  copy keras "$model" "$(basename "$(dirname "$model")")-$(basename "$model")"
done
for model in tests/pytorch/checkpoints/*/model* tests/pytorch/checkpoints/*/*.pt*; do
  [ ! -f "$model" ] || copy checkpoint "$model" "$(basename "$(dirname "$model")")-$(basename "$model")"
done
for model in tests/pytorch/scripts/*/model.pt; do
  [ -f "$model" ] || continue
  name=$(basename "$(dirname "$model")")
  copy script "$model" "$name.pt"
  unzip -p "$model" '*/code/*.py' > "$out/script/$name.py" 2> /dev/null || true
done
for model in tests/pytorch/programs/*/*/model.pt2; do
  name=$(basename "$(dirname "$(dirname "$model")")")-$(basename "$(dirname "$model")")
  unzip -p "$model" '*/models/model.json' > "$out/pt2/$name.json"
  case $name in *_0) ;; *) continue ;; esac
  copy pt2 "$model" "$name.pt2"
  "$tombolo" convert "$model" "$out/onnx/$name.onnx" --quiet > /dev/null 2>&1 || continue
  "$tombolo" print "$out/onnx/$name.onnx" > "$out/text/$name.txt"
  "$tombolo" print "$out/onnx/$name.onnx" --format json > "$out/json/$name.json"
done
# Any bytes are calls of ATen operators.
for i in {1..64}; do head -c 256 /dev/urandom > "$out/aten/$i"; done
# Models with subgraphs, functions and rare types are in the text cases.
for file in tests/check/*.test tests/infer/*.test tests/run/*.test tests/text/*.test; do
  cp "$file" "$out/text/$(basename "$(dirname "$file")")-$(basename "$file")"
done
