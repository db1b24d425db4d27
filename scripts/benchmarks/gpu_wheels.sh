#!/usr/bin/env bash
# Collects the wheels that vectorized training wants and a machine with JAX for a GPU may lack.
# usage: scripts/benchmarks/gpu_wheels.sh [FOLDER] [PYTHON VERSION]   (default: wheels 3.12)
set -euo pipefail
folder=${1:-wheels} python=${2:-3.12}
platforms=(--platform=any)
for glibc in 17 24 27 28 31 34; do platforms+=("--platform=manylinux_2_${glibc}_x86_64"); done
platforms+=(--platform=manylinux2014_x86_64)
# JAX, optax, flax, numpy and tqdm are there; what needs these is fetched alone. gymnax
# imports six without saying so, and seaborn wants pandas.
python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$folder" \
  --implementation=cp --python-version="$python" "${platforms[@]}" \
  'ale-py>=0.12,<0.13' 'gymnasium>=1.2,<1.4' farama-notifications cloudpickle \
  'gin-config>=0.5,<0.6' 'gymnax>=1.0.1,<1.1' 'zstandard>=0.23,<0.26' \
  seaborn pandas python-dateutil six
du -sh "$folder"
cat <<END
On the machine with the GPU, in the project's folder:
python3 -m pip install --quiet --no-index --no-deps --target=$folder/site $folder/*.whl && export PYTHONPATH=.:$folder/site
python3 scripts/benchmark.py gpu --out=gpu
END
