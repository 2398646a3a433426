// The closed and open configs of the four benchmarks (rules specification, 3.4 to 3.8), and what
// the document demands beyond the checker (6.7).

#include <utility>

#include "common/rules/hpc_tables.h"

namespace assay::rules {
namespace {

Condition EachGreater(JsonValue x) {
  return Compare(Condition::Kind::kEachGreater, std::move(x));
}

Condition EachLess(JsonValue x) {
  return Compare(Condition::Kind::kEachLess, std::move(x));
}

Condition EachAtMost(JsonValue x) {
  return Compare(Condition::Kind::kEachAtMost, std::move(x));
}

KeyRule Optional(KeyRule rule) {
  rule.occurrence = Occurrence::kOptional;
  return rule;
}

// A constant of the reference that closed submissions keep.
KeyRule Fixed(std::string id, std::string key, JsonValue value) {
  KeyRule rule = Hyperparameter(std::move(id), std::move(key), {Equals(std::move(value))},
                                "use the reference's value");
  return rule;
}

KeyRule FixedSamples(std::string id, std::string key, int count) {
  KeyRule rule = Fixed(std::move(id), std::move(key), count);
  rule.topic = Topic::kData;
  rule.section = kDataSection;
  rule.remedy = "use the whole reference dataset";
  return rule;
}

Config OpenConfig(const Benchmark& benchmark, const char* quality_id) {
  return {.name = "open_" + benchmark.name, .rules = {QualityRule(quality_id, benchmark)}};
}

Config DeepcamLamb() {
  return {.name = "closed_deepcam_lamb",
          .rules = {Hyperparameter("R-HP-112", "opt_bias_correction", {IsTrue()}),
                    Hyperparameter("R-HP-113", "opt_grad_averaging", {IsTrue()}),
                    Fixed("R-HP-114", "opt_max_grad_norm", 1)}};
}

Config DeepcamMultistep() {
  return {.name = "closed_deepcam_multistep",
          .rules = {Hyperparameter("R-HP-115", "scheduler_milestones", {HasLength()}),
                    Hyperparameter("R-HP-116", "scheduler_decay_rate", {AtMost(1)})}};
}

Config DeepcamCosine() {
  return {.name = "closed_deepcam_cosine_annealing",
          .rules = {Hyperparameter("R-HP-117", "scheduler_t_max", {AtLeast(1)}),
                    Hyperparameter("R-HP-118", "scheduler_eta_min", {AtLeast(0)})}};
}

Config ClosedDeepcam() {
  Config config = {
      .name = "closed_deepcam",
      .rules = {
          Hyperparameter("R-HP-101", "gradient_accumulation_frequency", {Greater(0)}),
          Hyperparameter("R-HP-102", "seed", {Greater(0)},
                         "log the seed that the run was given, a positive number"),
          Hyperparameter("R-HP-103", "global_batch_size", {Greater(0)}),
          Hyperparameter("R-HP-104", "batchnorm_group_size", {Greater(0)}),
          Hyperparameter("R-HP-105", "opt_name", {OneOf({"Adam", "AdamW", "LAMB"})},
                         "set opt_name to Adam, AdamW or LAMB, or submit to open"),
          Hyperparameter("R-HP-106", "opt_lr", {Greater(0)}),
          Hyperparameter("R-HP-107", "opt_betas", {Length(2)}),
          Hyperparameter("R-HP-108", "opt_eps", {Close(1e-6)}),
          Hyperparameter("R-HP-109", "scheduler_type", {OneOf({"multistep", "cosine_annealing"})}),
          Hyperparameter("R-HP-110", "scheduler_lr_warmup_steps", {AtLeast(0)}),
          Hyperparameter("R-HP-111", "scheduler_lr_warmup_factor", {AtLeast(1)}),
          FixedSamples("R-DAT-003", "train_samples", 121266),
          FixedSamples("R-DAT-004", "eval_samples", 15158), QualityRule("R-QUA-002", Deepcam())}};
  config.rules[1].topic = Topic::kRecord;  // the coordinator gives seeds, nobody tunes them
  config.rules[4].effects = {{.kind = Effect::Kind::kEnqueue,
                              .prefix = "closed_deepcam_",
                              .lower_case = true,
                              .only_if = "LAMB"}};
  config.rules[8].effects = {
      {.kind = Effect::Kind::kEnqueue, .prefix = "closed_deepcam_", .lower_case = true}};
  return config;
}

// The constants of OpenFold's reference.
std::vector<KeyRule> OpenfoldConstants() {
  return {Fixed("R-HP-301", "target_avg_lddt_ca_value", 0.8),
          Fixed("R-HP-302", "train_max_pdb_release_date", "2021-09-16"),
          Fixed("R-HP-303", "val_min_cameo_submission_date", "2021-09-17"),
          Fixed("R-HP-304", "val_max_cameo_submission_date", "2021-12-11"),
          Fixed("R-HP-305", "val_max_sequence_length", 700),
          Fixed("R-HP-306", "val_every_iters", 40),
          FixedSamples("R-DAT-005", "train_samples", 594595),
          FixedSamples("R-DAT-006", "eval_samples", 180),
          Fixed("R-HP-307", "model_parameters_count", 93229082),
          Fixed("R-HP-308", "train_sequence_crop_size", 256),
          Fixed("R-HP-309", "num_recycling_iters", 3),
          Fixed("R-HP-310", "max_msa_clusters", 124),
          Fixed("R-HP-311", "max_extra_msa", 1024),
          Fixed("R-HP-312", "templates_enabled", true),
          Fixed("R-HP-313", "max_templates", 4),
          Fixed("R-HP-314", "fape_loss_weight", 1.0),
          Fixed("R-HP-315", "fape_loss_backbone_weight", 0.5),
          Fixed("R-HP-316", "fape_loss_sidechain_weight", 0.5),
          Fixed("R-HP-317", "supervised_chi_loss_weight", 1.0),
          Fixed("R-HP-318", "distogram_loss_weight", 0.3),
          Fixed("R-HP-319", "masked_msa_loss_weight", 2.0),
          Fixed("R-HP-320", "plddt_loss_weight", 0.01),
          Fixed("R-HP-321", "opt_name", "Adam"),
          Fixed("R-HP-322", "opt_adam_beta_1", 0.9),
          Fixed("R-HP-323", "opt_adam_beta_2", 0.999),
          Fixed("R-HP-324", "opt_adam_epsilon", 1e-6),
          Fixed("R-HP-325", "opt_weight_decay", 0.0),
          Fixed("R-HP-326", "opt_amsgrad", false),
          Fixed("R-HP-327", "opt_gradient_clipping", true),
          Fixed("R-HP-328", "opt_gradient_clip_norm", 0.1),
          Fixed("R-HP-329", "swa_enabled", true),
          Fixed("R-HP-330", "swa_decay_rate", 0.9),
          Fixed("R-HP-331", "init_checkpoint_sha256sum",
                "b518be4677048f2c0f94889c91e2da73655a73b825a8aa7f8b6f5e580d8ffbed")};
}

}  // namespace

Benchmark Cosmoflow() {
  return {.name = "cosmoflow",
          .runs_required = 10,
          .quality_key = "eval_error",
          .lower_is_better = true,
          .target = 0.124,
          .document_rules = {Fixed("R-HP-020", "sgd_opt_momentum", 0.9),
                             Hyperparameter("R-HP-021", "opt_learning_rate_decay_boundary_epochs",
                                            {EachGreater(0)}),
                             Hyperparameter("R-HP-022", "opt_learning_rate_decay_factor",
                                            {EachGreater(0), EachLess(1)})}};
}

std::vector<Config> CosmoflowConfigs() {
  const Benchmark benchmark = Cosmoflow();
  Config closed = {
      .name = "closed_cosmoflow",
      .rules = {Hyperparameter("R-HP-003", "global_batch_size", {Greater(0)}),
                Hyperparameter("R-HP-004", "opt_name", {OneOf({"sgd", "SGD"})},
                               "set opt_name to sgd, or submit to the open division"),
                Hyperparameter("R-HP-005", "opt_base_learning_rate", {AtLeast(0)}),
                Hyperparameter("R-HP-006", "opt_learning_rate_warmup_epochs", {AtLeast(0)}),
                Hyperparameter("R-HP-007", "opt_learning_rate_warmup_factor", {AtLeast(0)}),
                Hyperparameter("R-HP-008", "opt_learning_rate_decay_boundary_epochs", {}),
                Hyperparameter("R-HP-009", "opt_learning_rate_decay_factor", {}),
                Optional(Hyperparameter("R-HP-010", "dropout", {AtLeast(0), Less(1)})),
                Optional(Hyperparameter("R-HP-011", "opt_weight_decay", {AtLeast(0)})),
                QualityRule("R-QUA-001", benchmark)}};
  return {std::move(closed), OpenConfig(benchmark, "R-QUA-001")};
}

Benchmark Deepcam() {
  return {.name = "deepcam",
          .runs_required = 5,
          .quality_key = "eval_accuracy",
          .lower_is_better = false,
          .target = 0.82,
          .document_rules = {Hyperparameter("R-HP-120", "opt_weight_decay", {AtLeast(0)})}};
}

std::vector<Config> DeepcamConfigs() {
  return {ClosedDeepcam(), DeepcamLamb(), DeepcamMultistep(), DeepcamCosine(),
          OpenConfig(Deepcam(), "R-QUA-002")};
}

Benchmark Oc20() {
  return {
      .name = "oc20",
      .runs_required = 5,
      .quality_key = "eval_error",
      .lower_is_better = true,
      .target = 0.036,
      .document_rules = {
          Hyperparameter("R-HP-220", "opt_base_learning_rate", {Greater(0)}),
          Hyperparameter("R-HP-221", "opt_learning_rate_warmup_factor", {AtMost(1)}),
          Hyperparameter("R-HP-222", "opt_learning_rate_decay_boundary_steps", {EachGreater(0)}),
          Hyperparameter("R-HP-223", "opt_learning_rate_decay_factor", {EachAtMost(1)})}};
}

std::vector<Config> Oc20Configs() {
  const Benchmark benchmark = Oc20();
  Config closed = {
      .name = "closed_oc20",
      .rules = {Hyperparameter("R-HP-201", "global_batch_size", {Greater(0)}),
                Hyperparameter("R-HP-202", "opt_name", {Equals("AdamW")},
                               "set opt_name to AdamW, or submit to the open division"),
                Hyperparameter("R-HP-203", "opt_base_learning_rate", {AtLeast(0)}),
                Hyperparameter("R-HP-204", "opt_learning_rate_warmup_steps", {AtLeast(0)}),
                Hyperparameter("R-HP-205", "opt_learning_rate_warmup_factor", {AtLeast(0)}),
                Hyperparameter("R-HP-206", "opt_learning_rate_decay_boundary_steps", {}),
                Hyperparameter("R-HP-207", "opt_learning_rate_decay_factor", {}),
                QualityRule("R-QUA-003", benchmark)}};
  return {std::move(closed), OpenConfig(benchmark, "R-QUA-003")};
}

Benchmark Openfold() {
  return {.name = "openfold",
          .runs_required = 10,
          .quality_key = "eval_accuracy",
          .lower_is_better = false,
          .target = 0.8};
}

std::vector<Config> OpenfoldConfigs() {
  const Benchmark benchmark = Openfold();
  Config closed = {.name = "closed_openfold", .rules = OpenfoldConstants()};
  closed.rules.push_back(Hyperparameter("R-HP-332", "global_batch_size", {Greater(0)}));
  closed.rules.push_back(Hyperparameter("R-HP-333", "opt_base_learning_rate", {AtLeast(0)}));
  closed.rules.push_back(Hyperparameter("R-HP-334", "opt_learning_rate_warmup_init", {AtLeast(0)}));
  closed.rules.push_back(
      Hyperparameter("R-HP-335", "opt_learning_rate_warmup_steps", {AtLeast(0)}));
  closed.rules.push_back(
      Hyperparameter("R-HP-336", "initial_training_dataloader_type",
                     {OneOfSet({"InitialTrainingDataloaderPT", "InitialTrainingDataloaderPQ"})}));
  closed.rules.push_back(QualityRule("R-QUA-004", benchmark));
  return {std::move(closed), OpenConfig(benchmark, "R-QUA-004")};
}

}  // namespace assay::rules
