#!/usr/bin/env bash
# Builds the GPU checks where there is a compiler, and runs them where there is a GPU: not the same
# machine, often.
#
#   tests/gpu/run.sh pack [BUNDLE]          build (CUDA's toolkit and cuDNN 9 needed, no GPU) and pack
#   tests/gpu/run.sh run [BUNDLE] [OUT]     on the GPU machine: unpack, test, measure; report in OUT
#   tests/gpu/run.sh                        both, here
#
# BUNDLE (build/gpu/assay-gpu.tar.gz) holds programs and the libraries that they need besides the C
# and C++ runtimes and NVIDIA's own. Of those, cuBLAS and cuDNN come from the machine that runs: from
# CUDA's installation or from python3's nvidia-* wheels.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
readonly root
readonly programs=(worker_engine_test worker_models_test worker_cuda_device_test cuda_step_bench assay-train)

pack() {
  local bundle=$1 stage
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
  for program in "${programs[@]}"; do ldd "$stage/assay-gpu/bin/$program"; done |
    awk '$3 ~ /^\// {print $3}' | sort -u |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libcu[a-zA-Z_]*|libnv[a-zA-Z_]*|libnccl)\.so' |
    xargs -I{} cp -L {} "$stage/assay-gpu/lib/"
  strip --strip-debug "$stage"/assay-gpu/bin/*
  tar -C "$stage" -czf "$bundle.part" assay-gpu
  mv "$bundle.part" "$bundle"
  echo "packed $bundle, $(du -h "$bundle" | cut -f1)"
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

check() {  # check NAME COMMAND...: runs it, keeps its output, says how it ended
  local name=$1 status=0 start=$SECONDS
  shift
  "$@" >"$out/$name.txt" 2>&1 || status=$?
  echo "== $name: exit status $status, $((SECONDS - start)) s"
  grep -E '^\[ *(PASSED|FAILED|SKIPPED) *\]|UNAVAILABLE|refused=|using slow loops' "$out/$name.txt" |
    sort | uniq -c | sort -rn | head -20 || true
  ((status == 0)) || failures=$((failures + 1))
}

run() {
  local bundle=$1 out=$2 stage failures=0
  stage=$(mktemp -d)
  trap 'rm -rf "$stage"' RETURN
  mkdir -p "$out"
  tar -C "$stage" -xzf "$bundle"
  cd "$stage/assay-gpu"
  LD_LIBRARY_PATH=$PWD/lib:$(nvidia_libraries | paste -sd:):${LD_LIBRARY_PATH:-}
  export LD_LIBRARY_PATH ASSAY_BIN_DIR=$PWD/bin OMP_NUM_THREADS=4
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || true
  echo "== usable backends: $(bin/assay-train --backends | paste -sd' ')"
  check device bin/worker_cuda_device_test
  check operations bin/worker_engine_test --gtest_filter='*/cuda:*/cuda_bf16:*Plugin*'
  check models bin/worker_models_test --gtest_filter='*Cuda*'
  if command -v compute-sanitizer >/dev/null; then
    check sanitizer compute-sanitizer --error-exitcode 1 bin/worker_engine_test --gtest_filter='*/cuda:*/cuda_bf16'
    check sanitizer-models compute-sanitizer --error-exitcode 1 bin/worker_models_test --gtest_filter='*OnAGpu*'
  fi
  check steps bin/cuda_step_bench
  cat "$out/steps.txt"
  echo "== $failures of the checks above failed; outputs are in $out"
  ((failures == 0))
}

bundle=$(realpath -m "${2:-$root/build/gpu/assay-gpu.tar.gz}")
case "${1:-all}" in
  pack) pack "$bundle" ;;
  run) run "$bundle" "$(realpath -m "${3:-$root/build/gpu/report}")" ;;
  all) pack "$bundle" && run "$bundle" "$(realpath -m "$root/build/gpu/report")" ;;
  *) sed -n '2,11p' "$0" >&2; exit 2 ;;
esac
