#!/usr/bin/env bash
# The traffic account against hardware counters, on a GPU host whose ncu may read them: builds
# account_bench (beside gpu_session.sh's build), runs it under ncu and compares. Exit status 1 when
# fewer than five kernels agree within 5 %. Files: $OUT/account.json, ncu-memory.csv, ncu-moved.csv,
# ncu-account.json.
# The comparison needs the package: PYTHON, default .venv/bin/python, with the extension built.
# PARAMS: a parameter set; OPERATION: each (one launch of every kind, the default) or bootstrap.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-/tmp/out}
mkdir -p "$out"
build=${BUILD:-build-gpu}
program=("$build/account_bench" --device cuda --params "${PARAMS:-boot40}" --operation "${OPERATION:-each}")
if [ ! -f "$build/src/libcrenel.a" ]; then
  cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DCRENEL_CUDA=ON >"$out/cmake.log" 2>&1
fi
cmake --build "$build" --target crenel >"$out/build.log" 2>&1 || { grep -E "error|FAILED" "$out/build.log"; exit 2; }
g++ -std=c++20 -O2 -Iinclude bench/micro/account_bench.cpp "$build/src/libcrenel.a" \
  -L/usr/local/cuda/lib64 -lcudart_static -fopenmp -ldl -lrt -lpthread -o "$build/account_bench"

"${program[@]}" --json "$out/account.json"
number() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$out/account.json" "$1"; }
# Only our kernels count for skipping, in case the driver fills or copies memory by kernels of its own: all of
# src/backends/cuda/poly (python/tests/test_counted_kernels.py compares).
# Memory and time apart from the rest, in one pass: what replays a launch restores what it wrote, through L2.
# crenel.ncu.RUNS has the same.
memory=gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,lts__t_bytes.sum
moved=lts__t_sectors_srcunit_tex_op_read.sum,lts__t_sectors_srcunit_tex_op_write.sum
moved+=,l1tex__m_xbar2l1tex_read_bytes.sum,l1tex__m_l1tex2xbar_write_bytes.sum
kernels='regex:^(binary|scalar|tensor|base_convert|convert_|key_multiply|key_switch_rows|automorphism|lift_|plain_|linear_|hoisted_|shared_|sample_|reduce_|row_|column_|small_|spread_).*'
for run in memory moved; do
  timeout "${NCU_SECONDS:-300}" ncu --clock-control none --cache-control none --csv --print-units base \
    --print-kernel-base function --kernel-name-base function --kernel-name "$kernels" \
    --launch-skip "$(number kernels_before)" --launch-count "$(number kernels)" --metrics "${!run}" \
    "${program[@]}" --json "$out/account-$run.json" >"$out/ncu-$run.csv"
  cmp "$out/account.json" "$out/account-$run.json"
done
PYTHONPATH=python "${PYTHON:-.venv/bin/python}" bench/compare/ncu_account.py "$out/account.json" \
  "$out/ncu-memory.csv" "$out/ncu-moved.csv" --json "$out/ncu-account.json"
