#!/usr/bin/env bash
# Times variants of the tuning headers: each argument is "FILE:SED-EXPRESSION[|FILE:SED...]" relative
# to src/backends/cuda. Needs the build of gpu_session.sh. The headers are restored afterwards.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-/tmp/out}
build=build-gpu
ops=${ONLY:-mod}
run() {
  cmake --build $build --target crenel >"$out/sweep_build.log" 2>&1 || { grep error "$out/sweep_build.log" | head -3; return; }
  g++ -O2 -fopenmp $build/kernels_bench.o $build/src/libcrenel.a -L/usr/local/cuda/lib64 \
    -lcudart_static -ldl -lrt -lpthread -o $build/kernels_bench_sweep
  for op in $ops; do $build/kernels_bench_sweep --only "$op" | awk 'NR>2{printf "%s/%s %s  ", $1, $2, $3}'; done
  echo
}
g++ -std=c++20 -O2 -Isrc -Iinclude -c bench/micro/kernels_bench.cpp -o $build/kernels_bench.o
cp -r src/backends/cuda /tmp/sweep_backup
for variant in "$@"; do
  IFS='|' read -ra edits <<<"$variant"
  for e in "${edits[@]}"; do [ "$e" != base ] && sed -i "${e#*:}" "src/backends/cuda/${e%%:*}"; done
  echo "-- $variant"; run
  for e in "${edits[@]}"; do [ "$e" != base ] && cp "/tmp/sweep_backup/${e%%:*}" "src/backends/cuda/${e%%:*}"; done
done
