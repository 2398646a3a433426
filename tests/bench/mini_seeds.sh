#!/usr/bin/env bash
# How soon the round cosmoflow-mini reaches its target, seed by seed: prints eval_error of each epoch.
# Usage: tests/bench/mini_seeds.sh DATASET [SEED_COUNT]     (DATASET: ~/.cache/assay/datasets/cosmo32)
# Trains with the hyperparameters of deploy/quickstart/cosmoflow-mini.toml on one rank and one core.
set -euo pipefail
dataset=${1:?usage: mini_seeds.sh DATASET [SEED_COUNT]}
count=${2:-20}
trainer=${TRAINER:-$(cd "$(dirname "$0")/../.." && pwd)/build/release/bin/assay-train}
epochs=${EPOCHS:-8}
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT

parameter() { echo "hyperparameters { key: \"$1\" json_value: \"$2\" }"; }
for ((seed = 201; seed < 201 + count; ++seed)); do
  {
    cat <<SPEC
run: "runs/r-$seed" run_number: $seed organization: "bench" system: "host" division: "closed"
status: "research" benchmark: "cosmoflow" round: "cosmoflow-mini" backend: "onednn"
seed: $seed epoch_count_max: $epochs quality_target: 0.30 quality_key: "eval_error"
node_count: 1 ranks_per_node: 1 log_path: "$work/$seed.txt"
model { cube_edge: 32 base_filter_count: 8 }
dataset { path: "$dataset" train_sample_count: 2048 eval_sample_count: 256 }
SPEC
    parameter global_batch_size 8
    parameter opt_base_learning_rate 0.012
    parameter opt_learning_rate_warmup_epochs 1
    parameter opt_learning_rate_warmup_factor 4
    parameter opt_learning_rate_decay_boundary_epochs '[5]'
    parameter opt_learning_rate_decay_factor '[0.25]'
    parameter dropout 0.0
  } >"$work/$seed.spec"
  OMP_NUM_THREADS=1 "$trainer" "$work/$seed.spec" 2>"$work/$seed.err" || cat "$work/$seed.err" >&2
  errors=$(grep '"eval_error"' "$work/$seed.txt" | sed 's/.*"value": \([0-9.]*\).*/\1/' | xargs printf '%.3f ')
  echo "seed $seed: $errors"
done
