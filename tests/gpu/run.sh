#!/usr/bin/env bash
# Builds the GPU checks where there is a compiler, and runs them where there is a GPU: not the same
# machine, often.
#
#   tests/gpu/run.sh pack [BUNDLE]               build (CUDA's toolkit and cuDNN 9 needed, no GPU), pack
#   tests/gpu/run.sh stage NAME [BUNDLE] [OUT]   on the GPU machine: one of the stages, in this order
#     check     conformance and training in bfloat16, the steps that matter, NCCL     (8 minutes)
#     torch     the same steps beside PyTorch's, in turns; what copies and products reach    (7)
#     trace     each call with its time, call by call; the device's properties for cuDNN     (8)
#     profile   ncu on the slowest kernels, compute-sanitizer on short tests                 (8)
#     rest      tests and steps in TF32 and float32, all other sizes                         (8)
#   tests/gpu/run.sh run [BUNDLE] [OUT]          all stages
#   tests/gpu/run.sh plans                       which engines cuDNN takes, compiled ones too; no GPU
#
# BUNDLE (build/gpu/assay-gpu.tar.gz) holds programs and the libraries that they need besides the C
# and C++ runtimes (packed on Debian 12: glibc 2.34, libstdc++ of GCC 12 or newer) and NVIDIA's own.
# cuBLAS and cuDNN come from the machine that runs: from CUDA's installation or python3's wheels.
# OUT (build/gpu/report) gets log.txt with everything, summary.md, and tables: at most eight files of a stage.
# Every case is a process of its own that may take LIMIT_S (90); a stage begins none after MINUTES, which
# is what stands behind it, so that it ends within ten.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
readonly root
readonly programs=(worker_engine_test worker_models_test worker_cuda_device_test cuda_step_bench step_probe assay-train assay)
readonly scripts=(tests/gpu/gpu_torch.py tests/bench/{pytorch_ratio,cosmoflow_torch,deepcam_torch,torch_training,assay_streams,own_rounds}.py
  tests/golden/engine/make_golden.py)
# What counts, at its full size; a floor in ms a sample (docs/benchmarks/gpu.md).
readonly steps=(cosmoflow/128/1 cosmoflow/128/8 deepcam/768x1152/1 deepcam/768x1152/2 deepcam/768x1152/4)
# Not in the bundle: glibc's parts fit only each other, and NVIDIA's the driver.
readonly not_packed='/(ld-linux-x86-64|libc|libm|libmvec|libdl|librt|libpthread|libresolv|libutil|libanl|libnsl|libnss_[a-z]+|libstdc\+\+|libgcc_s|libcuda|libcudart|libcudnn[a-z_]*|libcublas(Lt)?|libnv[a-zA-Z_-]*|libnccl)\.so'

pack() {
  local bundle=$1 stage missing
  stage=$(mktemp -d)
  trap 'rm -rf "$stage"' RETURN
  cd "$root"
  cmake --preset dev >"$stage.log" || { cat "$stage.log"; return 1; }
  rm -f "$stage.log"
  cmake --build --preset dev -j"${JOBS:-$(nproc)}" --target "${programs[@]}" assay_cuda
  mkdir -p "$stage/assay-gpu/bin" "$stage/assay-gpu/lib" "$(dirname "$bundle")"
  for program in "${programs[@]}"; do
    cp "build/dev/bin/$program" "$stage/assay-gpu/bin/" 2>/dev/null ||
      cp "build/dev/tests/$program" "$stage/assay-gpu/bin/"
  done
  cp build/dev/bin/libassay_cuda.so "$stage/assay-gpu/bin/"
  cp --parents "${scripts[@]}" "$stage/assay-gpu/"
  for program in "${programs[@]}"; do ldd "$stage/assay-gpu/bin/$program"; done |
    awk '$3 ~ /^\// {print $3}' | sort -u | grep -vE "$not_packed" |
    xargs -I{} cp -L {} "$stage/assay-gpu/lib/"
  missing=$(not_in_bundle "$stage/assay-gpu")
  [[ -z $missing ]] || { echo "needed, but not in the bundle: $missing" >&2; return 1; }
  strip --strip-debug "$stage"/assay-gpu/bin/*
  tar -C "$stage" -czf "$bundle.part" assay-gpu
  mv "$bundle.part" "$bundle"
  echo "packed $bundle, $(du -h "$bundle" | cut -f1)"
}

# What something in this folder needs that is neither in it nor left to the machine that runs.
not_in_bundle() {
  local library
  objdump -p "$1"/bin/* "$1"/lib/* | awk '$1 == "NEEDED" {print $2}' | sort -u |
    while read -r library; do
      [[ -e $1/lib/$library || /$library =~ $not_packed ]] || echo "$library"
    done
}

# Folders with NVIDIA's libraries: python3's wheels, then CUDA's usual place.
nvidia_libraries() {
  python3 - <<'PYTHON' || true
import glob, importlib.util, os
spec = importlib.util.find_spec("nvidia")
for root in (spec.submodule_search_locations if spec else []):
    for folder in sorted(glob.glob(os.path.join(root, "*", "lib"))):
        print(folder)
PYTHON
  echo /usr/local/cuda/lib64
}

say() { echo "$*" | tee -a "$out/log.txt"; }

# Only what comes out of the bundle sees its libraries, and nothing hangs for good.
packed() { timeout -k 5 "${LIMIT_S:-90}" env LD_LIBRARY_PATH="$libraries" "$@"; }

# case_of NAME COMMAND...: one process; what it says goes to the log, and to $last.
case_of() {
  local name=$1 status=0 start=$SECONDS
  shift
  if ((SECONDS - began > 60 * minutes)); then
    left_out+=("$name")
    return 0
  fi
  { echo; echo "== $name: $*"; } >>"$out/log.txt"
  packed "$@" >"$last" 2>&1 || status=$?
  cat "$last" >>"$out/log.txt"
  if ((status != 0)); then
    failed+=("$name")
    say "FAILED $name: exit status $status after $((SECONDS - start)) s$( ((status == 124 || status == 137)) && echo ', the limit')"
    grep -E 'level=error|Failure|\[  FAILED' "$last" | head -4 | cut -c1-300 | tee -a "$out/log.txt" >&2 || true
  elif grep -q '^\[  SKIPPED' "$last"; then
    skipped+=("$name")
  else
    passed+=("$name")
  fi
}

# tests PROGRAM FILTER: each test in a process of its own: a fault of the GPU ends one.
tests() {
  local program=$1 filter=$2 name
  packed "bin/$program" --gtest_list_tests --gtest_filter="$filter" 2>/dev/null |
    awk '/^[^ ].*\.( |$)/ {suite = $1} /^  / {print suite $1}' >"$names"
  while read -r -u 3 name; do
    case_of "$program $name" "bin/$program" --gtest_filter="$name"
  done 3<"$names"
}

# measured BACKEND CASE...: a row of steps.tsv for each.
measured() {
  local backend=$1 name
  shift
  for name in "$@"; do
    case_of "steps $backend $name" bin/cuda_step_bench "--case=$name" "$backend"
    awk -v backend="$backend" '$1 == backend {print $1 "\t" $2 "\t" $3 "\t" $4 "\t" $5 "\t" $6}' "$last" >>"$out/steps.tsv" 2>/dev/null || true
  done
}

stage_check() {
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>&1 | tee -a "$out/log.txt" || true
  packed ldd bin/* 2>&1 | grep 'not found' | sort -u | tee -a "$out/log.txt" || true
  say "usable backends: $(packed bin/assay-train --backends 2>>"$out/log.txt" | paste -sd' ')"
  case_of "first step" bin/cuda_step_bench --case=cosmoflow/32/1 cuda-bf16
  tests worker_engine_test '*/cuda_bf16'
  tests worker_models_test '*OnAGpu*/cuda_bf16:*CudaInputGpu*'
  measured cuda-bf16 "${steps[@]}"
  tests worker_cuda_device_test '*'
  all_reduces
}

# Means of gradients among the GPUs of this machine, beside sums of as many ranks on the host.
all_reduces() {
  local gpus
  gpus=$(packed bin/assay-train --gpus 2>>"$out/log.txt") || gpus=0
  ((gpus > 1)) || { say "all-reduces by NCCL are not measured: they take two GPUs, here are $gpus"; return 0; }
  case_of "all-reduces by NCCL, $gpus GPUs" bin/assay bench allreduce --nccl --bytes 4,16KiB,1MiB,16MiB,35630224,64MiB
  tail -8 "$last"
}

stage_torch() {
  LIMIT_S=60 case_of "ceilings" python3 tests/gpu/gpu_torch.py --ceilings
  grep -E 'GB/s|TFLOP/s' "$last" | tee -a "$out/ceilings.txt" || true
  for name in "${steps[@]}"; do
    LIMIT_S=150 case_of "torch $name" python3 tests/gpu/gpu_torch.py --case "$name" --probe bin/step_probe \
      --limit 100 --seconds 3 --json "$out/torch.jsonl"
    grep '^| [cd]' "$last" >>"$out/torch.md" || true
  done
}

# The dearest calls of a trace, without its first three runs of each section.
dearest() {
  awk -F'\t' 'NR > 1 && $2 > 2 {us[$6] += $3; n[$6]++; all += $3; gb[$6] = $4; tf[$6] = $5}
    END {for (c in us) printf "%5.1f %% %9.1f us %6d calls %8s GB/s %8s TFLOP/s  %s\n", 100 * us[c] / all, us[c] / n[c], n[c], gb[c], tf[c], c}' "$1" |
    sort -rn | head -25
}

stage_trace() {
  for name in cosmoflow/128/8 deepcam/768x1152/2; do
    file=$out/trace-${name%%/*}.tsv
    case_of "trace $name" bin/cuda_step_bench "--case=$name" "--trace_calls=$file" cuda-bf16
    [[ ! -e $file ]] || { say "dearest calls of $name"; dearest "$file" | tee -a "$out/log.txt"; }
    [[ ! -e $file ]] || gzip -f "$file"
    case_of "call by call $name" bin/cuda_step_bench "--case=$name" --call_by_call cuda-bf16
    tail -1 "$last"
  done
  for name in cosmoflow/128/1 cosmoflow/128/8; do
    case_of "blocks in one call $name" bin/cuda_step_bench "--case=$name" --fused_blocks cuda-bf16
    tail -1 "$last"
  done
  case_of "device properties" bin/worker_cuda_device_test --gtest_filter='*PropertiesOfThisGpu*'
  sed -n 's/^device_properties=//p' "$last" >"$out/device.json"
}

stage_profile() {
  if command -v ncu >/dev/null; then
    for name in cosmoflow/128/8 deepcam/768x1152/1; do
      LIMIT_S=240 case_of "ncu $name" ncu --set basic --launch-skip 3000 --launch-count 300 \
        bin/cuda_step_bench "--case=$name" --call_by_call cuda-bf16
      cat "$last" >>"$out/ncu.txt"
    done
  else
    say "ncu is not installed"
  fi
  command -v compute-sanitizer >/dev/null || { say "compute-sanitizer is not installed"; return 0; }
  packed bin/worker_engine_test --gtest_list_tests --gtest_filter='*onformanceTest*/cuda_bf16' 2>/dev/null |
    awk '/^[^ ]/ {suite = $1} /^  / {print suite $1}' >"$names"
  while read -r -u 3 name; do
    case_of "sanitizer $name" compute-sanitizer --error-exitcode 1 bin/worker_engine_test --gtest_filter="$name"
  done 3<"$names"
}

stage_rest() {
  tests worker_engine_test '*/cuda:*Plugin*'
  tests worker_models_test '*OnAGpu*:-*cuda_bf16:*CudaInputGpu*'
  measured cuda-tf32 "${steps[@]}"
  measured cuda cosmoflow/128/1 cosmoflow/128/8 deepcam/768x1152/1
  measured cuda-bf16 cosmoflow/32/1 cosmoflow/32/32 cosmoflow/64/1 cosmoflow/64/8 cosmoflow/128/2 cosmoflow/128/4 \
    deepcam/96x144/1 deepcam/96x144/8 deepcam/192x288/4
}

summary() {
  {
    echo "# $stage_name, $(date -u +%FT%TZ): ${#passed[@]} passed, ${#failed[@]} failed, ${#skipped[@]} skipped, ${#left_out[@]} left out for time"
    printf -- '- failed: %s\n' "${failed[@]}"
    printf -- '- left out: %s\n' "${left_out[@]}"
    if [[ -s $out/steps.tsv ]]; then
      printf '\n| backend | model | size | batch | median ms | best ms | ms a sample | floor | of floor |\n|---|---|---|---|---|---|---|---|---|\n'
      awk -F'\t' 'BEGIN {f["cuda-bf16cosmoflow128"] = 0.243; f["cuda-tf32cosmoflow128"] = 0.486; f["cudacosmoflow128"] = 2.87
          f["cuda-bf16deepcam768x1152"] = 2.49; f["cuda-tf32deepcam768x1152"] = 4.98; f["cudadeepcam768x1152"] = 29.3}
        {floor = f[$1 $2 $3]; one = $6 / $4
         printf "| %s | %s | %s | %s | %s | %s | %.3f | %s | %s |\n", $1, $2, $3, $4, $5, $6, one, floor ? floor : "", floor ? sprintf("%.2f", one / floor) : ""}' "$out/steps.tsv"
    fi
    if [[ -s $out/torch.md ]]; then
      printf '\n| model | size | batch | Assay ms | PyTorch ms | compiled ms | PyTorch / Assay | floor ms | Assay / floor |\n|---|---|---|---|---|---|---|---|---|\n'
      cat "$out/torch.md"
    fi
    echo
  } | grep -vE '^- (failed|left out): $' >>"$out/summary.md"
  tail -n +1 "$out/summary.md"
}

stage() {
  local stage_name=$1 bundle=$2 out=$3 unpacked libraries last names began=$SECONDS minutes
  local passed=() failed=() skipped=() left_out=()
  case $stage_name in
    check) minutes=8 ;;
    torch) minutes=7 ;;
    trace | profile | rest) minutes=8 ;;
    *) usage ;;
  esac
  minutes=${MINUTES:-$minutes}
  mkdir -p "$out"
  unpacked=$(mktemp -d)
  trap 'rm -rf "$unpacked"' RETURN
  last=$unpacked/last names=$unpacked/names
  : >"$last"
  tar -C "$unpacked" -xzf "$bundle"
  cd "$unpacked/assay-gpu"
  libraries=$PWD/lib:$(nvidia_libraries | paste -sd:)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export ASSAY_BIN_DIR=$PWD/bin OMP_NUM_THREADS=4
  say "== stage $stage_name"
  "stage_$stage_name"
  summary
  ((${#failed[@]} == 0))
}

# Compiling engines wants the driver, of which a stub suffices.
plans() {
  local stage
  stage=$(mktemp -d)
  trap 'rm -rf "$stage"' RETURN
  cd "$root"
  cmake --build --preset dev --target worker_cuda_plans_test
  python3 tests/gpu/stub_libcuda.py "${CUDA_PATH:-/usr/local/cuda}/lib64/stubs/libcuda.so" "$stage"
  LD_LIBRARY_PATH=$stage${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} build/dev/tests/worker_cuda_plans_test
}

usage() { sed -n '2,13p' "$0" >&2; exit 2; }

readonly default_bundle=$root/build/gpu/assay-gpu.tar.gz default_out=$root/build/gpu/report
case "${1:-}" in
  pack) pack "$(realpath -m "${2:-$default_bundle}")" ;;
  stage) stage "${2:-}" "$(realpath -m "${3:-$default_bundle}")" "$(realpath -m "${4:-$default_out}")" ;;
  run)
    worst=0
    for name in check torch trace profile rest; do
      "$0" stage "$name" "${2:-$default_bundle}" "${3:-$default_out}" || worst=1
    done
    exit $worst ;;
  plans) plans ;;
  *) usage ;;
esac
