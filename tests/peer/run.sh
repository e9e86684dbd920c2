#!/bin/sh
# usage: tests/peer/run.sh SCRIPT [ARGUMENT...]
#
# Runs a test against other libraries with the Python that has them: .venv, which
# script/bootstrap --peers makes, or the one that KILN_PEER_PYTHON names. Without one it says so and
# ends with status 77, which ctest counts as skipped.

root=$(cd "$(dirname "$0")/../.." && pwd)
python=${KILN_PEER_PYTHON:-$root/.venv/bin/python}
if [ ! -x "$python" ]; then
  echo "skipped: no Python with PyTorch and safetensors at $python (script/bootstrap --peers makes it)"
  exit 77
fi
if ! "$python" -c 'import numpy, safetensors, torch' 2>/dev/null; then
  echo "skipped: $python lacks PyTorch, NumPy or safetensors (script/bootstrap --peers adds them)"
  exit 77
fi
exec "$python" "$@"
