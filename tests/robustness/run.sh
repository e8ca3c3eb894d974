#!/usr/bin/env bash
# Hostile input through the command line and the library.
#
#   tests/robustness/run.sh TOMBOLO GUARD MUTATE    (built as tombolo, tombolo_guard, tombolo_mutate)
#
# Every command must end by itself within 10 s of processor time and 512 MiB resident, with an exit code of the contract (0 to 6), and
# from 2 up with one error on standard error and, with --json, the same as JSON. FULL=1 tries every truncation, 1,000
# bit flips of each file, and the giant inputs (several minutes, 2 GB of temporary files); FULL=giants only the last.
set -uo pipefail
[ $# -eq 3 ] || { echo "usage: $0 TOMBOLO GUARD MUTATE" >&2; exit 2; }
tombolo=$(realpath "$1") guard=$(realpath "$2") mutate=$(realpath "$3")
here=$(cd "$(dirname "$0")" && pwd) root=$(cd "$(dirname "$0")/../.." && pwd)
full=${FULL:-}
work=$(mktemp -d "${TMPDIR:-/tmp}/tombolo-robust.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
failed=0 cases=0
# A sanitizer build takes a multiple of the memory and the time.
seconds=${LIMIT_SECONDS:-10} mib=${LIMIT_MIB:-512}

complain() { echo "FAILED: $*" >&2; failed=$((failed + 1)); }

# check WANTED ARGUMENTS...: runs tombolo; WANTED is "any" or exit codes like "3 4".
check() {
  local wanted=$1 code
  shift
  cases=$((cases + 1))
  "$guard" "$seconds" "$mib" usage "$tombolo" "$@" > out 2> err < /dev/null
  code=$?
  local what="tombolo $* (exit $code, $(tail -1 usage))"
  case $code in
    0 | 1 | 2 | 3 | 4 | 5 | 6) ;;
    124) complain "$what: took longer than $seconds s"; return ;;
    125) complain "$what: took more than $mib MiB"; return ;;
    *) complain "$what: crashed"; head -3 err >&2; return ;;
  esac
  [ "$wanted" = any ] || [[ " $wanted " == *" $code "* ]] || { complain "$what: wanted $wanted"; head -5 err >&2; }
  if [ "$code" -ge 2 ]; then
    [ "$(grep -ac '^error' err)" = 1 ] || { complain "$what: not one error on standard error"; head -5 err >&2; }
    if [[ " $* " == *" --json "* ]]; then
      [[ "$(< out)" == *'{"error":{"code":"'*'"message":"'*'"where":"'*'"help":"'*'}}' ]] ||
        { complain "$what: no JSON error"; head -c 300 out >&2; }
    fi
  fi
}

# every WANTED FILE: info, check, convert and run. WANTED holds for each of them.
every() {
  check "$1" info "$2"
  check "$1" check "$2" --json
  rm -f every.onnx
  check "$1" convert "$2" every.onnx
  check "$1" run "$2" --random --json
  rm -f every.onnx
}

section() { printf '%s\n' "-- $*"; }

report() {
  if [ "$failed" -eq 0 ]; then
    echo "$cases commands, all within $seconds s and $mib MiB; the slowest took $(sort -k2 -n usage | tail -1 | cut -d' ' -f2) s," \
      "the largest $(sort -k4 -n usage | tail -1 | cut -d' ' -f4) MiB"
  else
    echo "$failed of $cases commands FAILED" >&2
  fi
  exit $((failed > 0))
}

[ "$full" = giants ] && { . "$here/giants.sh"; report; }

# --- Files of every readable kind -------------------------------------------------------------------------------------
mkdir files
cp "$here/models/external.bin" files/
for text in "$here"/models/*.onnxtxt; do
  name=$(basename "$text" .onnxtxt)
  cp "$text" files/
  check 0 parse "$text" "files/$name.onnx"
  check 0 print "files/$name.onnx" "files/$name.json"
done
keras=$root/tests/keras/cases
cp "$root/examples/digits/digits.keras" "$root/examples/digits/digits.h5" "$root/examples/digits/inputs.npz" \
  "$root/examples/digits/3.png" files/
cp "$keras/dense_sequential/model.keras" files/dense.keras
cp "$keras/functional_residual/model.keras" files/residual.keras
cp "$keras/lstm_settings/model.h5" files/lstm.h5

section "truncations and bit flips, in memory"
if [ "$full" ]; then small=(--flips 1000) large=(--flips 1000)
else small=(--truncations 60 --flips 60) large=(--truncations 12 --flips 12); fi
"$mutate" "${small[@]}" files/*.onnx files/*.onnxtxt files/*.json files/*.npz files/*.png || complain "tombolo_mutate"
"$mutate" "${large[@]}" files/*.keras files/*.h5 || complain "tombolo_mutate"

section "truncations and bit flips, through the command line"
for file in files/control.onnx files/tensors.onnx files/functions.onnxtxt files/rare.json files/dense.keras files/lstm.h5; do
  size=$(stat -c %s "$file")
  for at in 0 1 $((size / 3)) $((size - 1)); do
    "$mutate" --length "$at" "$file" > "cut.${file##*.}"
    every any "cut.${file##*.}"
  done
  for at in 7 $((size)) $((size * 5)); do
    "$mutate" --bit "$at" "$file" > "flip.${file##*.}"
    every any "flip.${file##*.}"
  done
done
for bit in 3 100 400 900; do
  "$mutate" --bit "$bit" files/inputs.npz > in.npz
  check any run files/digits.h5 --inputs in.npz --json
  "$mutate" --bit "$bit" files/3.png > in.png
  check any run files/digits.h5 --input image=in.png --json
done
head -c 60 files/3.png > in.png
check "2 3" run files/digits.h5 --input image=in.png --json

section "what is no model"
: > empty.onnx
mkdir folder
printf 'hello\n' > hello.onnx
head -c 100000 /dev/urandom > noise.onnx
for file in empty.onnx folder hello.onnx noise.onnx missing.onnx; do every 3 "$file"; done

# --- Nesting, lengths, sizes ------------------------------------------------------------------------------------------
repeat() { yes "$1" | head -n "$2" | tr -d '\n'; }

section "deep nesting"
for depth in 90 5000 200000; do
  { printf '<ir_version: 8, opset_import: ["" : 17]>\ng (bool c) => (bool y) { y = '
    repeat 'If (c) <then_branch: graph = a () => (bool y) { y = ' $depth
    printf 'Not (c)'
    repeat ' }>' $depth
    printf ' }\n'; } > deep.onnxtxt
  every any deep.onnxtxt
  { printf '<ir_version: 8, opset_import: ["" : 17]>\ng ('; repeat 'seq(' $depth; printf 'float'; repeat ')' $depth
    printf ' x) => (x) { }\n'; } > types.onnxtxt
  every any types.onnxtxt
  { printf '{"irVersion":8,"graph":'; repeat '{"node":[{"attribute":[{"g":' $depth; printf '{}'; repeat '}]}]}' $depth
    printf '}'; } > deep.json
  every any deep.json
  { printf '{"irVersion":8,"graph":'; repeat '[' $depth; repeat ']' $depth; printf '}'; } > brackets.json
  every any brackets.json
done
# Protobuf: a graph whose attribute holds a graph, ... each level one more length prefix.
nest() {  # nest FIELD_BYTE FROM TO: a length-delimited field around the bytes of FROM
  local size; size=$(stat -c %s "$2"); local bytes='' n=$size
  while [ "$n" -ge 128 ]; do bytes+=$(printf '\\x%02x' $((n % 128 + 128))); n=$((n / 128)); done
  bytes+=$(printf '\\x%02x' "$n")
  { printf "$1$bytes"; cat "$2"; } > "$3"
}
: > inner
for ((i = 0; i < 300; ++i)); do  # GraphProto.node > NodeProto.attribute > AttributeProto.g
  nest '\x32' inner a && nest '\x2a' a b && nest '\x0a' b inner
done
nest '\x3a' inner body
{ printf '\x08\x08'; cat body; } > deep.onnx
every 3 deep.onnx

section "huge lengths and dimensions"
printf '\x08\x08\x3a\xff\xff\xff\xff\x0f' > length.onnx
every 3 length.onnx
printf '\x08\x08\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f' > length.onnx
every 3 length.onnx
sizes() {  # sizes DIMS: a constant of that shape without data, and computing with that shape
  cat > size.onnxtxt << END
<ir_version: 8, opset_import: ["" : 18]>
g () => (float[N] y) <float[$1] w = {}> { y = Relu (w) }
END
  every any size.onnxtxt
  cat > size.onnxtxt << END
<ir_version: 8, opset_import: ["" : 18]>
g (float[$1] x) => (float[N] y) { y = Relu (x) }
END
  every any size.onnxtxt
  local list=${1//,/, }
  cat > size.onnxtxt << END
<ir_version: 8, opset_import: ["" : 18]>
g () => (float[A] y) <int64[$(($(tr -cd , <<< "$1" | wc -c) + 1))] s = {$list}> { y = ConstantOfShape (s) }
END
  every any size.onnxtxt
  check "5 6" run size.onnxtxt
}
sizes 9223372036854775807
sizes 4294967296,4294967296
sizes 4611686018427387904,4
sizes 1099511627776
sizes 100000,100000,100000,100000,100000,100000
run_text() {  # run_text WANTED NODES: int64 and float initialisers at hand
  cat > one.onnxtxt << END
<ir_version: 8, opset_import: ["" : 18]>
g () => (float[A] y)
<int64 zero = {0}, int64 one = {1}, int64 huge = {9223372036854775807}, int64 least = {-9223372036854775808},
 int64[1] h1 = {9223372036854775807}, int64[1] h2 = {1099511627776}, int64[1] l1 = {-9223372036854775808}, int64[1] z1 = {0}, int64[1] o1 = {1},
 float[1] f = {1}, float[1,1,4,4] image = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, float[1,1,2,2] kernel = {1, 2, 3, 4},
 int64[2] hp = {4611686018427387904, 4611686018427387904}, float[4] hs = {1, 1, 1e30, 1e30}, float[2] on_off = {0, 1}> { $2 }
END
  check "$1" run one.onnxtxt --json
  check "0 1" check one.onnxtxt
  check any infer one.onnxtxt
}
run_text "5 6" 'y = Range (zero, huge, one)'
run_text "0 5 6" 'y = Range (least, huge, huge)'
run_text "5 6" 'y = Expand (f, h2)'
run_text "5 6" 'y = Expand (f, h1)'
run_text "5 6" 'y = Tile (f, h1)'
run_text "5 6" 'y = Tile (f, h2)'
run_text "5 6" 'y = OneHot (zero, huge, on_off)'
run_text "5 6" 'y = Pad (f, hp)'
run_text "0 5 6" 'y = Slice (f, l1, h1, z1, h1)'
run_text "5 6" 'y = Slice (f, l1, h1, z1, z1)'
run_text "5" 'y = Gather (f, h1)'
run_text "5" 'y = GatherElements (f, l1)'
run_text "5" 'y = ScatterElements (f, h1, f)'
run_text "5 6" 'y = Resize (image, , hs)'
run_text "any" 'y = Conv <pads: ints = [9223372036854775807, 0, 0, 0]> (image, kernel)'
run_text "any" 'y = Conv <dilations: ints = [4611686018427387904, 4611686018427387904]> (image, kernel)'
run_text "any" 'y = Conv <strides: ints = [0, 0]> (image, kernel)'
run_text "any" 'y = Conv <group: int = 0> (image, kernel)'
run_text "any" 'y = ConvTranspose <strides: ints = [9223372036854775807, 2]> (image, kernel)'
run_text "any" 'y = MaxPool <kernel_shape: ints = [9223372036854775807, 1], pads: ints = [4611686018427387904, 0, 4611686018427387904, 0]> (image)'
run_text "any" 'y = AveragePool <kernel_shape: ints = [2147483647, 2147483647], pads: ints = [2147483646, 2147483646, 2147483646, 2147483646]> (image)'
run_text "any" 'y = AveragePool <kernel_shape: ints = [-1, 0]> (image)'
run_text "any" 'y = DepthToSpace <blocksize: int = 9223372036854775807> (image)'
run_text "any" 'y = Split <axis: int = 0, num_outputs: int = 9223372036854775807> (f)'
run_text "any" 'y = Reshape (f, hp)'
run_text "any" 'y = RandomNormal <shape: ints = [1099511627776]> ()'
run_text "any" 'y = EyeLike <k: int = 9223372036854775807> (image)'
run_text "any" 'y = Transpose <perm: ints = [9223372036854775807, 0, 1, 2]> (image)'
run_text "any" 'y = Concat <axis: int = -9223372036854775808> (f, f)'
run_text "any" 'y = Softmax <axis: int = 9223372036854775807> (f)'
run_text "any" 'y = HannWindow (huge)'
run_text "any" 'y = BlackmanWindow (huge)'
run_text "any" 'y = LRN <size: int = 9223372036854775807> (image)'
run_text "any" 'y = CenterCropPad (f, h1)'
run_text "any" 'y = Div (one, zero)'
run_text "any" 'm = Div (least, l) l = Sub (zero, one) y = Cast <to: int = 1> (m)'
run_text "any" 'l = Sub (zero, one) m = Div (least, l) y = Cast <to: int = 1> (m)'
run_text "any" 'l = Sub (zero, one) m = Mod (least, l) y = Cast <to: int = 1> (m)'
run_text "any" 'm = BitShift <direction: string = "LEFT"> (u, u) u = Cast <to: int = 13> (huge) y = Cast <to: int = 1> (m)'
run_text "any" 'y = TopK <axis: int = 0> (f, h1)'
run_text "any" 'y = Einsum <equation: string = "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z->"> (f)'

section "sixty doubling Concats"
{ printf '<ir_version: 8, opset_import: ["" : 17]>\ng (float[1024] x0) => (float[N] x60) {\n'
  for ((i = 0; i < 60; ++i)); do printf '  x%d = Concat <axis: int = 0> (x%d, x%d)\n' $((i + 1)) $i $i; done
  printf '}\n'; } > concats.onnxtxt
check 6 run concats.onnxtxt --random
check 6 run concats.onnxtxt --random --json
every any concats.onnxtxt
{ printf '<ir_version: 8, opset_import: ["" : 17, "f" : 1]>\ng (float[1024] x) => (float[N] y) { y = f.f40 (x) }\n'
  printf '<domain: "f", opset_import: ["" : 17]> f0 (x) => (y) { y = Concat <axis: int = 0> (x, x) }\n'
  for ((i = 0; i < 40; ++i)); do
    printf '<domain: "f", opset_import: ["" : 17, "f" : 1]> f%d (x) => (y) { t = f.f%d (x) y = f.f%d (t) }\n' $((i + 1)) $i $i
  done; } > functions.onnxtxt
# 2^40 calls, were they all expanded.
check any info functions.onnxtxt
check any check functions.onnxtxt
check any infer functions.onnxtxt
check any convert functions.onnxtxt functions.onnx
check 6 run functions.onnxtxt --random --memory-limit 200
cat > forever.onnxtxt << 'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[1] x) => (float[1] y) <bool yes = {1}> {
  y = Loop (, yes, x) <body: graph = b (int64 i, bool c, float[1] s) => (bool d, float[1] t) { d = Identity (c) t = Neg (s) }>
}
END
check 6 run forever.onnxtxt --random --time-limit 1
cat > idle.onnxtxt << 'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[1] x, float[1] z) => (float[1] y) { y, w = Loop (, , x, z) <body: graph = b (int64 i, bool c, float[1] s, float[1] t) => (c, t, s) { }> }
END
check "5 6" run idle.onnxtxt --random --time-limit 1
# What never changes needs no Loop; without passes it goes round.
cat > still.onnxtxt << 'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[1] x) => (float[1] y) { y = Loop (, , x) <body: graph = b (int64 i, bool c, float[1] s) => (c, s) { }> }
END
check 0 run still.onnxtxt --random --time-limit 1
check "5 6" run still.onnxtxt --random --time-limit 1 --reference
cat > grows.onnxtxt << 'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[1024] x) => (float[N] y) <bool yes = {1}> {
  y = Loop (, yes, x) <body: graph = b (int64 i, bool c, float[M] s) => (bool d, float[K] t) { d = Identity (c) t = Concat <axis: int = 0> (s, s) }>
}
END
check 6 run grows.onnxtxt --random --memory-limit 200

section "functions that call themselves, and each other"
cat > self.onnxtxt << 'END'
<ir_version: 8, opset_import: ["" : 17, "f" : 1]>
g (float[1] x) => (float[1] y) { y = f.again (x) }
<domain: "f", opset_import: ["" : 17, "f" : 1]> again (x) => (y) { y = f.again (x) }
END
check 1 check self.onnxtxt
every any self.onnxtxt
cat > cycle.onnxtxt << 'END'
<ir_version: 8, opset_import: ["" : 17, "f" : 1]>
g (float[1] x, bool c) => (float[1] y) { y = f.a (x, c) }
<domain: "f", opset_import: ["" : 17, "f" : 1]> a (x, c) => (y) { y = f.b (x, c) }
<domain: "f", opset_import: ["" : 17, "f" : 1]> b (x, c) => (y) {
  y = If (c) <then_branch: graph = t () => (z) { z = f.a (x, c) }, else_branch: graph = e () => (w) { w = f.b (x, c) }>
}
END
check 1 check cycle.onnxtxt
every any cycle.onnxtxt
cat > graph_cycle.onnxtxt << 'END'
<ir_version: 8, opset_import: ["" : 17]>
g (float[1] x) => (float[1] y) { y = Add (x, z) z = Neg (y) }
END
check 1 check graph_cycle.onnxtxt
every any graph_cycle.onnxtxt

# --- External data ----------------------------------------------------------------------------------------------------
section "external data that escape"
mkdir -p model/inside
head -c 4096 /dev/zero > secret.bin
head -c 4096 /dev/zero > model/own.bin
ln -s ../secret.bin model/link.bin
ln -s .. model/up
ln model/own.bin model/hard.bin
mkfifo model/pipe
external() {  # external WANTED_OF_CHECK LOCATION OFFSET LENGTH
  cat > model/m.onnxtxt << END
<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[4] y) <float[4] w = ["location": "$2", "offset": "$3", "length": "$4"]> { y = Add (x, w) }
END
  check "$1" check model/m.onnxtxt
  check "$1" check model/m.onnxtxt --json --checksums
  check 0 info model/m.onnxtxt
  check 0 print model/m.onnxtxt printed.onnxtxt
  check "$([ "$1" = 0 ] && echo 0 || echo 3)" run model/m.onnxtxt --random --json
  rm -rf out.d && mkdir out.d
  for mode in none one each; do
    check "$([ "$1" = 0 ] && echo 0 || echo 3)" convert model/m.onnxtxt out.d/c.onnx --external $mode --json
    [ "$1" = 0 ] || [ -z "$(ls -A out.d)" ] || complain "convert left $(ls -A out.d) for location $2"
  done
}
cp model/own.bin model/fine.bin
external 0 fine.bin 16 16
external 0 ./fine.bin 0 16
external 1 ../secret.bin 0 16
external 1 inside/../../secret.bin 0 16
external 1 "$work/secret.bin" 0 16
external 1 /etc/passwd 0 16
external 1 link.bin 0 16
external 1 up/secret.bin 0 16
external 1 hard.bin 0 16
external 1 inside 0 16
external 1 pipe 0 16
external 1 /dev/zero 0 16
external 1 missing.bin 0 16
external 1 '' 0 16
external 1 . 0 16
external 1 fine.bin 4096 16
external 1 fine.bin 4090 16
external 1 fine.bin 18446744073709551600 16
external 1 fine.bin 9223372036854775807 16
external 1 fine.bin -16 16
external 1 fine.bin 0 17
external 1 fine.bin 0 18446744073709551615
external 1 fine.bin x 16

# --- Outputs ----------------------------------------------------------------------------------------------------------
section "outputs appear whole or not at all"
untouched() {  # untouched WHAT: out.d holds the old file and nothing else
  [ "$(ls -A out.d)" = kept.onnx ] && [ "$(cat out.d/kept.onnx)" = old ] || complain "$1 left $(ls -A out.d)"
}
fresh() { rm -rf out.d && mkdir out.d && printf old > out.d/kept.onnx; }
for verb in convert infer print parse; do
  fresh
  check 3 "$verb" noise.onnx out.d/kept.onnx
  untouched "$verb of what cannot be read"
done
fresh
check "2 3 4 5 6" run files/digits.h5 --outputs out.d/kept.onnx
untouched "a run without inputs"
# No file may grow beyond 8 KiB: what a full disk looks like, for any user.
limited() { (ulimit -f 8; trap '' XFSZ; exec "$@"); }
for arguments in "convert files/digits.h5" "convert files/digits.h5 --external one" "infer files/digits.h5" "print files/digits.h5"; do
  fresh
  limited "$tombolo" $arguments -o out.d/kept.onnx > out 2> err
  code=$?
  cases=$((cases + 1))
  [ $code = 6 ] || complain "$arguments with a full disk: exit $code"
  [ "$(grep -c '^error' err)" = 1 ] || complain "$arguments with a full disk: not one error"
  untouched "$arguments with a full disk"
done
"$tombolo" print files/digits.h5 > /dev/full 2> err
[ $? = 6 ] || complain "print to a full device does not exit with 6"
[ "$(grep -c '^error' err)" = 1 ] || complain "print to a full device: not one error"
"$tombolo" info files/digits.h5 > /dev/full 2> err
[ $? = 6 ] || complain "info to a full device does not exit with 6"
fresh
check 0 convert files/digits.h5 out.d/kept.onnx
check 0 check out.d/kept.onnx
[ "$(ls -A out.d)" = kept.onnx ] || complain "convert left $(ls -A out.d)"
check "2 3 6" convert files/digits.h5 out.d
check "2 3 6" convert files/digits.h5 missing/out.onnx

[ "$full" ] && . "$here/giants.sh"
report
