#!/usr/bin/env bash
# Builds the GPU checks where there is a compiler, and runs them where there is a GPU: not the same
# machine, often.
#
#   tests/gpu/run.sh pack [BUNDLE]          build (CUDA's toolkit and cuDNN 9 needed, no GPU) and pack
#   tests/gpu/run.sh run [BUNDLE] [OUT]     on the GPU machine: unpack, test, measure; report in OUT
#   tests/gpu/run.sh                        both, here
#   tests/gpu/run.sh plans                  which engines cuDNN would take, compiled ones too; no GPU
#
# BUNDLE (build/gpu/assay-gpu.tar.gz) holds programs and the libraries that they need besides the C
# and C++ runtimes (packed on Debian 12: glibc 2.34, libstdc++ of GCC 12 or newer) and NVIDIA's own.
# Of those, cuBLAS and cuDNN come from the machine that runs: from CUDA's installation or from
# python3's nvidia-* wheels. LIMIT_S (900) is how long a test or a measurement may hang.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
readonly root
readonly programs=(worker_engine_test worker_models_test worker_cuda_device_test cuda_step_bench assay-train)
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

# Only what comes out of the bundle sees its libraries, and nothing hangs for good.
packed() {
  timeout -k 10 "${LIMIT_S:-900}" env LD_LIBRARY_PATH="$libraries" "$@"
}

ended() {  # ended NAME STATUS START: says how a check ended, whose output is there
  echo "== $1: exit status $2, $((SECONDS - $3)) s"
  grep -E '^\[ *FAILED *\] .*[^)]$' "$out/$1.txt" | sort -u || true
  grep -E '^\[ *(PASSED|SKIPPED) *\] [0-9]+ test|UNAVAILABLE|refused=|using slow loops|loading shared' \
    "$out/$1.txt" | sed 's/^time=[^ ]* //' | sort | uniq -c | sort -rn | head -20 || true
  (($2 == 0)) || failures=$((failures + 1))
}

check() {  # check NAME COMMAND...: runs it, keeps its output
  local name=$1 status=0 start=$SECONDS
  shift
  packed "$@" >"$out/$name.txt" 2>&1 || status=$?
  ended "$name" "$status" "$start"
}

# suite NAME FILTER COMMAND...: the same for tests. A fault of the GPU ends their process, and a
# hanging test is ended: what had not started by then is run by another process.
suite() {
  local name=$1 filter=$2 started='' last status worst=0 start=$SECONDS part="$out/$1.part"
  shift 2
  : >"$out/$name.txt"
  while true; do
    status=0
    packed "$@" --gtest_filter="$filter-$started" >"$part" 2>&1 || status=$?
    cat "$part" >>"$out/$name.txt"
    ((status == 0)) || worst=$status
    last=$(sed -n 's/^\[ RUN *\] //p' "$part" | tail -1)
    if [[ -z $last ]] || grep -qE '^\[==========\].* ran\.' "$part"; then break; fi
    echo "   $last ended the process with status $status"
    started+=":$(sed -n 's/^\[ RUN *\] //p' "$part" | paste -sd:)"
  done
  rm -f "$part"
  ended "$name" "$worst" "$start"
}

run() {
  local bundle=$1 out=$2 stage libraries backend failures=0
  stage=$(mktemp -d)
  trap 'rm -rf "$stage"' RETURN
  mkdir -p "$out"
  tar -C "$stage" -xzf "$bundle"
  cd "$stage/assay-gpu"
  libraries=$PWD/lib:$(nvidia_libraries | paste -sd:)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export ASSAY_BIN_DIR=$PWD/bin OMP_NUM_THREADS=4
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || true
  packed ldd bin/* 2>&1 | grep -E 'not found' | sort -u || true
  echo "== usable backends: $(packed bin/assay-train --backends | paste -sd' ')"
  suite device '*' bin/worker_cuda_device_test
  suite operations '*/cuda:*/cuda_bf16:*Plugin*' bin/worker_engine_test
  suite models '*OnAGpu*' bin/worker_models_test
  for backend in cuda cuda-tf32 cuda-bf16; do
    check "steps-$backend" bin/cuda_step_bench "$backend"
    cat "$out/steps-$backend.txt"
  done
  if command -v compute-sanitizer >/dev/null; then
    suite sanitizer '*/cuda:*/cuda_bf16' compute-sanitizer --error-exitcode 1 bin/worker_engine_test
    suite sanitizer-models '*OnAGpu*' compute-sanitizer --error-exitcode 1 bin/worker_models_test
  fi
  echo "== $failures of the checks above failed; outputs are in $out"
  ((failures == 0))
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

bundle=$(realpath -m "${2:-$root/build/gpu/assay-gpu.tar.gz}")
case "${1:-all}" in
  pack) pack "$bundle" ;;
  run) run "$bundle" "$(realpath -m "${3:-$root/build/gpu/report}")" ;;
  all) pack "$bundle" && run "$bundle" "$(realpath -m "$root/build/gpu/report")" ;;
  plans) plans ;;
  *) sed -n '2,14p' "$0" >&2; exit 2 ;;
esac
