#!/usr/bin/env bash
# How soon the round deepcam-mini reaches its target, seed by seed: prints eval_accuracy of each epoch.
# Usage: tests/bench/deepcam_mini_seeds.sh DATASET [SEED_COUNT]
#   DATASET: assay dataset generate DATASET --benchmark deepcam --train 256 --eval 32 --height 48 --width 80
# Trains with the hyperparameters of deploy/quickstart/deepcam-mini.toml on one rank and one core.
set -euo pipefail
dataset=${1:?usage: deepcam_mini_seeds.sh DATASET [SEED_COUNT]}
count=${2:-5}
trainer=${TRAINER:-$(cd "$(dirname "$0")/../.." && pwd)/build/release/bin/assay-train}
epochs=${EPOCHS:-12}
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT

parameter() { echo "hyperparameters { key: \"$1\" json_value: '$2' }"; }
for ((seed = 301; seed < 301 + count; ++seed)); do
  {
    cat <<SPEC
run: "runs/r-$seed" run_number: $seed organization: "bench" system: "host" division: "closed"
status: "research" benchmark: "deepcam" round: "deepcam-mini" backend: "onednn"
seed: $seed epoch_count_max: $epochs quality_target: 0.99 quality_key: "eval_accuracy"
node_count: 1 ranks_per_node: 1 log_path: "$work/$seed.txt"
dataset { path: "$dataset" train_sample_count: 256 eval_sample_count: 32 }
SPEC
    parameter global_batch_size 8
    parameter opt_name '"LAMB"'
    parameter opt_lr 0.01
    parameter opt_weight_decay 0.01
    parameter scheduler_type '"cosine_annealing"'
    parameter scheduler_t_max 512
    parameter map_height 48
    parameter map_width 80
    parameter base_filter_count 8
    parameter middle_block_count 2
  } >"$work/$seed.spec"
  OMP_NUM_THREADS=1 "$trainer" "$work/$seed.spec" 2>"$work/$seed.err" || cat "$work/$seed.err" >&2
  values=$(grep '"eval_accuracy"' "$work/$seed.txt" | sed 's/.*"value": \([0-9.]*\).*/\1/' | xargs printf '%.3f ')
  echo "seed $seed: $values"
done
