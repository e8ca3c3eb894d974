#!/usr/bin/env bash
# Compares with the real frameworks, in a throw-away Python environment below build/.
#   tools/oracle.sh onnx|keras|pytorch build/release/tombolo
set -euo pipefail
cd "$(dirname "$0")/.."
which=${1:?onnx, keras or pytorch} tombolo=${2:?path of the tombolo binary}
environment=build/oracle-$which
case "$which" in
  onnx) packages="onnx==1.23.2 onnxruntime==1.31.1 numpy ml_dtypes" ;;
  keras) packages="tensorflow-cpu==2.21.0 keras==3.15.1 tf_keras==2.21.0 numpy==2.4.6 h5py==3.14.0 scikit-learn==1.9.1 pillow==13.0.0" ;;
  pytorch) packages="torch==2.15.0 torchvision timm transformers torchao expecttest scipy joblib onnx==1.23.2 onnxruntime==1.31.1" ;;
  *) echo "usage: tools/oracle.sh onnx|keras|pytorch BINARY" >&2; exit 2 ;;
esac
if [ ! -f "$environment/.complete" ]; then
  python3 -m venv "$environment"
  "$environment/bin/pip" -q install $packages
  touch "$environment/.complete"
fi
python=$environment/bin/python
export TOMBOLO_SHARED=${TOMBOLO_SHARED:-../shared}
if [ "$which" = onnx ]; then
  "$python" tools/compare_registry.py "$tombolo"
  "$python" tools/check_functions.py "$tombolo"
elif [ "$which" = pytorch ]; then
  # What is committed, made anew: minutes. What follows takes hours.
  mkdir -p build/pytorch-checkpoints build/pytorch-traces
  "$python" tools/make_checkpoints.py build/pytorch-checkpoints --check "$tombolo"
  "$python" tools/make_traces.py build/pytorch-traces torch
  "$python" tools/oracle_torchscript.py make build/pytorch-scripts --groups control,aliasing,language,containers,tensors,networks,quantised --only '^(?!refused_)'
  "$python" tools/values_pytorch.py build/pytorch-groups --groups --tombolo "$tombolo" || true
  for what in traces scripts; do "$tombolo" conformance "build/pytorch-$what" --no-progress || true; done
  # Networks one after another, as all of them together take 40 GB.
  "$python" tools/sweep_pytorch.py build/pytorch-networks --tombolo "$tombolo" || true
  "$python" tools/values_pytorch.py build/pytorch-values --tombolo "$tombolo" || true
  for what in opdb complex; do
    "$python" tools/oracle_pytorch.py make "build/pytorch-$what" --what "$what"
    "$python" tools/oracle_pytorch.py run "build/pytorch-$what" --tombolo "$tombolo" || true
  done
else
  "$python" examples/digits/train.py --check
  "$python" tests/keras/make_cases.py --check
  "$python" tools/oracle_mlperf.py "$tombolo"
fi
