#!/usr/bin/env bash
# One run on a GPU host: build, conformance, memory checker on a subset, micro-benchmarks. Every part
# can be left out; logs go to $OUT. Usage: gpu_session.sh [build] [conformance] [memcheck] [bench] [ncu]
set -uo pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-/tmp/out}
mkdir -p "$out"
build=build-gpu
gtest=${CRENEL_GTEST_ROOT:-}  # sources of GoogleTest, where the system has none
for part in "$@"; do
  echo "== $part $(date +%T)"
  case $part in
    build)
      cmake -G Ninja -S . -B $build -DCMAKE_BUILD_TYPE=Release -DCRENEL_CUDA=ON -DCRENEL_BUILD_TESTS=ON \
        ${gtest:+-DCRENEL_GTEST_ROOT="$gtest"} >"$out/cmake.log" 2>&1 || { tail -20 "$out/cmake.log"; exit 1; }
      cmake --build $build --target crenel conformance_tests >"$out/build.log" 2>&1 ||
        { grep -E "error|FAILED" "$out/build.log" | head -20; exit 1; }
      g++ -std=c++20 -O2 -Isrc -Iinclude bench/micro/kernels_bench.cpp $build/src/libcrenel.a \
        -L/usr/local/cuda/lib64 -lcudart_static -fopenmp -ldl -lrt -lpthread -o $build/kernels_bench ;;
    conformance)
      CRENEL_DEVICES=cuda:0 CRENEL_REQUIRE=cuda timeout 240 \
        $build/tests/conformance_tests --gtest_brief=1 >"$out/conformance.log" 2>&1
      echo "conformance rc $?"; grep -E "FAILED|PASSED|SKIPPED" "$out/conformance.log" | head -40
      grep -vE "FAILED|PASSED" "$out/conformance.log" | cut -c1-300 | head -30 ;;
    memcheck)
      CRENEL_DEVICES=cuda:0 timeout ${CHECK_SECONDS:-150} compute-sanitizer --error-exitcode 9 \
        $build/tests/conformance_tests --gtest_brief=1 --gtest_filter="${FILTER:-*ModUp*:*Divide*:*KeyM*}" \
        >"$out/memcheck.log" 2>&1
      echo "memcheck rc $?"; tail -4 "$out/memcheck.log" ;;
    racecheck)
      CRENEL_DEVICES=cuda:0 timeout ${CHECK_SECONDS:-150} compute-sanitizer --tool racecheck --error-exitcode 9 \
        $build/tests/conformance_tests --gtest_brief=1 --gtest_filter="${FILTER:-*ModUp*:*Divide*}" \
        >"$out/racecheck.log" 2>&1
      echo "racecheck rc $?"; tail -4 "$out/racecheck.log" ;;
    bench) $build/kernels_bench --json "$out/kernels.json" | tee "$out/kernels.txt" ;;
    graph) $build/kernels_bench --graph --only "${ONLY:-h}" --json "$out/kernels_graph.json" ;;
    ncu)
      timeout 120 ncu --clock-control none --launch-skip "${SKIP:-0}" --launch-count "${COUNT:-30}" \
        --metrics "gpu__time_duration.sum,dram__bytes.sum,lts__t_bytes.sum,sm__throughput.avg.pct_of_peak_sustained_elapsed,sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active,sm__inst_executed_pipe_fmaheavy.avg.pct_of_peak_sustained_active,sm__warps_active.avg.pct_of_peak_sustained_active,smsp__issue_active.avg.pct_of_peak_sustained_active,$(printf "smsp__average_warps_issue_stalled_%s_per_issue_active.ratio," long_scoreboard short_scoreboard barrier math_pipe_throttle wait lg_throttle mio_throttle not_selected dispatch_stall no_instruction branch_resolve sleeping | sed s/,\$//)" \
        --csv $build/kernels_bench --only "${ONLY:-hmult}" >"$out/ncu.csv" 2>&1
      echo "ncu rc $?"; tail -3 "$out/ncu.csv" | cut -c1-300 ;;
  esac
done
