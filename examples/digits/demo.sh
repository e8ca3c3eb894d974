#!/usr/bin/env bash
# A network that Keras trained, in Keras's own file, becomes ONNX, is checked, and reads ten pictures.
#   examples/digits/demo.sh build/release/tombolo
set -euo pipefail
tombolo=$(realpath "${1:?path of the tombolo binary}")
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$here"

echo "\$ tombolo convert digits.keras digits.onnx"
"$tombolo" convert digits.keras "$work/digits.onnx"
echo "\$ tombolo check digits.onnx"
"$tombolo" check "$work/digits.onnx"
echo "\$ tombolo info digits.onnx"
"$tombolo" info "$work/digits.onnx"

right=0
for digit in 0 1 2 3 4 5 6 7 8 9; do
  line=$("$tombolo" run "$work/digits.onnx" --input "image=$digit.png" --top 1)
  echo "\$ tombolo run digits.onnx --input image=$digit.png --top 1     $line"
  [[ "$line" =~ [[:space:]]$digit: ]] && right=$((right + 1))
done
echo "\$ tombolo run digits.onnx --inputs inputs.npz --expected expected.npz --atol 1e-5"
"$tombolo" run "$work/digits.onnx" --inputs inputs.npz --expected expected.npz --atol 1e-5 --rtol 0
echo "$right of 10 digits named rightly"
[ "$right" -eq 10 ]
