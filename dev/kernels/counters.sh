#!/usr/bin/env bash
# Counters of single kernels for `crenel reproduce`, on a GPU host whose ncu may read them: transforms and
# conversions by limbs and polynomials; blind rotations of G2 by batch, and why warps wait in that of M3; then shapes
# of the rotation at packings that are not in bench/results. Parts by name, all without: kernels rotation stalls tune.
#
#   OUT=/tmp/out LABEL=h100 dev/kernels/counters.sh
#
# PROGRAMS: a folder with kernels_bench and torus_tune built already. Needs no Python: the last lines say what makes
# records of the files, on any machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-/tmp/out}
label=${LABEL:-gpu}
programs=${PROGRAMS:-build-gpu/bench/micro}
mkdir -p "$out"
# LOG COMMAND ...: with its output in a file, whose end says why where it fails.
logged() {
  local log=$out/$1
  shift
  "$@" >"$log" 2>&1 || { tail -n 5 "$log" >&2; echo "counters.sh: $1 failed: $log" >&2; exit 1; }
}

command -v ncu >/dev/null || { echo "counters.sh: no ncu here (Nsight Compute)" >&2; exit 1; }
if [ ! -x "$programs/torus_tune" ]; then
  logged cmake.log cmake -G Ninja -S . -B build-gpu -DCMAKE_BUILD_TYPE=Release -DCRENEL_CUDA=ON -DCRENEL_BUILD_BENCH=ON
  logged build.log cmake --build build-gpu --target kernels_bench torus_tune
fi

# Of metrics between commas, those that this ncu knows for this GPU. Ratios and sums are listed by their first part.
known() {
  local names metric kept=
  names=$(ncu --query-metrics 2>/dev/null | awk '{print $1}')
  for metric in ${1//,/ }; do
    if grep -qxF -e "${metric%%.*}" <<<"$names"; then kept+=",$metric"; else echo "not known here: $metric" >&2; fi
  done
  echo "${kept#,}"
}

active=.avg.pct_of_peak_sustained_active
elapsed=.avg.pct_of_peak_sustained_elapsed
memory=(gpu__time_duration.sum dram__bytes_read.sum dram__bytes_write.sum "dram__throughput$elapsed"
  "lts__throughput$elapsed" lts__t_sector_hit_rate.pct "l1tex__throughput$elapsed" l1tex__t_sector_hit_rate.pct
  "sm__throughput$elapsed" "sm__warps_active$active")
pipes=("smsp__issue_active$active" sm__inst_executed.sum sm__inst_executed_pipe_alu.sum sm__inst_executed_pipe_fmaheavy.sum
  "sm__inst_executed_pipe_alu$active" "sm__inst_executed_pipe_fmaheavy$active"
  l1tex__m_xbar2l1tex_read_bytes.sum l1tex__m_l1tex2xbar_write_bytes.sum
  l1tex__m_xbar2l1tex_read_bytes.sum.pct_of_peak_sustained_elapsed
  l1tex__m_l1tex2xbar_write_bytes.sum.pct_of_peak_sustained_elapsed)
stalls=()
for reason in selected not_selected long_scoreboard short_scoreboard barrier math_pipe_throttle wait lg_throttle \
  mio_throttle tex_throttle dispatch_stall no_instruction branch_resolve membar drain imc_miss sleeping misc; do
  stalls+=("smsp__average_warps_issue_stalled_${reason}_per_issue_active.ratio")
done

joined() {
  local IFS=,
  echo "$*"
}

profiled() { # NAME KERNELS METRICS PROGRAM...
  local name=$1 kernels=$2 metrics=$3
  shift 3
  rm -f "$out/$name.json"
  timeout "${NCU_SECONDS:-120}" ncu --clock-control none --cache-control none --csv --print-units base \
    --print-kernel-base function --kernel-name-base function --kernel-name "$kernels" --metrics "$metrics" \
    --log-file "$out/$name.csv" "$@" --json "$out/$name.json" >"$out/$name.txt" 2>&1 && grep -q '^"0"' "$out/$name.csv"
}

# What the program said goes to NAME.json, what ncu counted to NAME.csv. A metric that ncu does not know stops it.
counted() { # NAME KERNELS METRICS PROGRAM...
  local name=$1 kernels=$2 metrics=$3
  shift 3
  profiled "$name" "$kernels" "$metrics" "$@" || profiled "$name" "$kernels" "$(known "$metrics")" "$@" ||
    { echo "$name: failed"; tail -n 5 "$out/$name.txt" "$out/$name.csv"; return 0; }
  echo "$name: $(grep -c '^"[0-9]' "$out/$name.csv") values"
}

parts=("$@")
[ $# -gt 0 ] || parts=(kernels rotation stalls tune)
rotate=("$programs/torus_tune" --device cuda --once)
for part in "${parts[@]}"; do
  echo "== $part $(date +%T)"
  case $part in
    kernels) # All but sampling, whose launches are not what is measured.
      counted "kernels-once-$label" 'regex:^[^s]' "$(joined "${memory[@]}" "${pipes[@]}")" \
        "$programs/kernels_bench" --device cuda --once ;;
    rotation)
      counted "rotation-g2-$label" regex:blind_rotate "$(joined "${memory[@]}")" \
        "${rotate[@]}" --set G2 --batch 1,16,64,128,256,1024,4096,16384 ;;
    stalls)
      counted "rotation-m3-$label" regex:blind_rotate "$(joined gpu__time_duration.sum "${pipes[0]}" "${stalls[@]}")" \
        "${rotate[@]}" --set M3 --slots 5 ;;
    tune)
      # What bench/results lacks first.
      for of in M6:1,2 M3:1,2,3,4,5 M1:1,2,3 M4:1,2,3,4 M5:1 M5:2 M5:3 M5:4 M5:5; do
        file="$out/tfhe-tune-$(tr '[:upper:]' '[:lower:]' <<<"${of%:*}")-r${of#*:}-$label.json"
        timeout "${TUNE_SECONDS:-60}" "$programs/torus_tune" --device cuda --set "${of%:*}" --slots "${of#*:}" --quick \
          --json "${file//,/-}" | tail -1 || echo "$of: failed"
      done ;;
    *) echo "unknown part $part" >&2; exit 1 ;;
  esac
done
cat <<END
records of $out, with Python:
  PYTHONPATH=python python bench/compare/ncu_counters.py $out/NAME.json $out/NAME.csv --json bench/results/NAME.json
of kernels-once-$label, rotation-g2-$label and rotation-m3-$label; files tfhe-tune-* are records as they are
END
