#include "common/rules/hpc_tables.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace assay::rules {
namespace {

Effect Set(Flag flag) {
  return {.kind = Effect::Kind::kSetFlag, .flag = flag};
}

Effect Enqueue(std::string prefix, std::string suffix) {
  return {.kind = Effect::Kind::kEnqueue, .prefix = std::move(prefix), .suffix = std::move(suffix)};
}

KeyRule Submission(std::string id, std::string key, Condition check, std::string remedy) {
  return {.id = std::move(id),
          .key = std::move(key),
          .occurrence = Occurrence::kExactlyOne,
          .checks = {std::move(check)},
          .section = kSubmissionSection,
          .remedy = std::move(remedy)};
}

KeyRule Timing(std::string id, std::string key, Occurrence occurrence,
               std::vector<Condition> checks, std::vector<Effect> effects) {
  return {.id = std::move(id),
          .key = std::move(key),
          .occurrence = occurrence,
          .checks = std::move(checks),
          .effects = std::move(effects),
          .topic = Topic::kTiming,
          .section = kTimingSection,
          .remedy = "log each interval at the place and in the order of the reference"};
}

// An interval of which a block may stand for an epoch or an evaluation.
KeyRule Interval(std::string id, std::string key, std::string alternative,
                 std::vector<Condition> checks) {
  return {.id = std::move(id),
          .key = std::move(key),
          .occurrence = Occurrence::kAtLeastOneOr,
          .alternatives = {std::move(alternative)},
          .checks = std::move(checks),
          .topic = Topic::kTiming,
          .section = kTimingSection,
          .remedy = "log the interval with epoch_num (blocks: first_epoch_num, epoch_count)"};
}

KeyRule Samples(std::string id, std::string key) {
  return {.id = std::move(id),
          .key = std::move(key),
          .occurrence = Occurrence::kExactlyOne,
          .checks = {NotEmpty()},
          .topic = Topic::kData,
          .section = kDataSection,
          .remedy = "log the number of samples of the dataset"};
}

KeyRule BenchmarkName(const std::vector<std::string>& benchmarks, const std::string& division) {
  KeyRule rule = Submission("R-SUB-005", "submission_benchmark",
                            OneOf(std::vector<JsonValue>(benchmarks.begin(), benchmarks.end())),
                            "log the benchmark's name as the round spells it");
  rule.effects = {Enqueue(absl::StrCat(division, "_"), "")};
  return rule;
}

std::vector<KeyRule> SubmissionRules() {
  std::vector<KeyRule> rules = {
      Submission("R-SUB-001", "submission_org", NotEmpty(), "log who submits"),
      Submission("R-SUB-002", "submission_platform", NotEmpty(), "log the system's name"),
      Submission("R-SUB-003", "submission_division", OneOf({"closed", "open"}),
                 "log closed or open"),
      Submission("R-SUB-004", "submission_status",
                 OneOf({"cloud", "onprem", "preview", "research"}),
                 "log the system's availability"),
  };
  rules[2].effects = {Enqueue("", "_common")};
  return rules;
}

std::vector<KeyRule> TimingRules(const CommonOptions& options) {
  const Condition within = {.kind = Condition::Kind::kInitWithin,
                            .operands = {options.init_limit_ms}};
  std::vector<Condition> staging;
  if (options.staging_after_run_start) staging.push_back(FlagSet(Flag::kRunStarted));
  return {
      Timing("R-TIM-020", "cache_clear", Occurrence::kAtLeastOne, {}, {}),
      Timing("R-TIM-021", "init_start", Occurrence::kAtLeastOne,
             {FlagClear(Flag::kInitStopped), FlagClear(Flag::kRunStarted)},
             {Set(Flag::kInitStarted), {.kind = Effect::Kind::kNoteInitStart}}),
      Timing("R-TIM-022", "init_stop", Occurrence::kExactlyOne,
             {FlagSet(Flag::kInitStarted), FlagClear(Flag::kRunStarted), within},
             {Set(Flag::kInitStopped)}),
      Timing("R-TIM-023", "staging_start", Occurrence::kOptional, staging,
             {Set(Flag::kStagingStarted)}),
      Timing("R-TIM-024", "staging_stop", Occurrence::kOptional, {FlagSet(Flag::kStagingStarted)},
             {}),
      Timing("R-TIM-025", "run_start", Occurrence::kExactlyOne, {FlagSet(Flag::kInitStopped)},
             {Set(Flag::kRunStarted)}),
      Timing("R-TIM-026", "run_stop", Occurrence::kExactlyOne,
             {FlagSet(Flag::kRunStarted), MetadataHas("status")}, {Set(Flag::kRunStopped)}),
  };
}

std::vector<KeyRule> IntervalRules() {
  const Condition epoch_count = {
      .kind = Condition::Kind::kMetadataGreater, .operands = {0}, .member = "epoch_count"};
  return {
      Interval("R-EPO-001", "block_start", "epoch_start",
               {FlagSet(Flag::kRunStarted), MetadataHas("epoch_count"),
                MetadataHas("first_epoch_num"), epoch_count}),
      Interval("R-EPO-002", "block_stop", "epoch_stop", {MetadataHas("first_epoch_num")}),
      Interval("R-EPO-003", "epoch_start", "block_start", {MetadataHas("epoch_num")}),
      Interval("R-EPO-004", "epoch_stop", "block_stop", {MetadataHas("epoch_num")}),
      Interval("R-EPO-005", "eval_start", "block_start", {MetadataHas("epoch_num")}),
      Interval("R-EPO-006", "eval_stop", "block_stop", {MetadataHas("epoch_num")}),
  };
}

void AppendRules(std::vector<KeyRule> added, std::vector<KeyRule>* rules) {
  rules->insert(rules->end(), std::make_move_iterator(added.begin()),
                std::make_move_iterator(added.end()));
}

}  // namespace

KeyRule Hyperparameter(std::string id, std::string key, std::vector<Condition> checks,
                       std::string remedy) {
  if (remedy.empty()) remedy = absl::StrCat("set ", key, " to a value that the round allows");
  return {.id = std::move(id),
          .key = std::move(key),
          .occurrence = Occurrence::kExactlyOne,
          .checks = std::move(checks),
          .topic = Topic::kHyperparameter,
          .section = kHyperparameterSection,
          .remedy = std::move(remedy)};
}

KeyRule QualityRule(std::string id, const Benchmark& benchmark) {
  std::vector<Condition> target = {AtLeast(benchmark.target), AtMost(1)};
  if (benchmark.lower_is_better) target = {Greater(0), AtMost(benchmark.target)};
  return {.id = std::move(id),
          .key = benchmark.quality_key,
          .occurrence = Occurrence::kAtLeastOne,
          .checks = {MetadataHas("epoch_num")},
          .some_line = std::move(target),
          .topic = Topic::kQuality,
          .section = kQualitySection,
          .remedy = "train until the target is met; log the quality with epoch_num"};
}

Config CommonConfig(const CommonOptions& options) {
  Config config = {.name = "common", .has_flags = true, .rules = SubmissionRules()};
  AppendRules(TimingRules(options), &config.rules);
  AppendRules(IntervalRules(), &config.rules);
  config.rules.push_back(Samples("R-DAT-001", "train_samples"));
  config.rules.push_back(Samples("R-DAT-002", "eval_samples"));
  return config;
}

Config ClosedCommonConfig(const std::vector<std::string>& benchmarks) {
  Config config = {
      .name = "closed_common",
      .rules = {BenchmarkName(benchmarks, "closed"),
                Hyperparameter("R-HP-001", "gradient_accumulation_steps", {Greater(0)}),
                Hyperparameter("R-HP-002", "gradient_accumulation_frequency", {Greater(0)}),
                Hyperparameter("R-SYS-001", "number_of_nodes", {Greater(0)},
                               "log the number of nodes of the instance"),
                Hyperparameter("R-SYS-002", "accelerators_per_node", {AtLeast(0)},
                               "log the accelerators of a node, 0 if none")}};
  config.rules[1].occurrence = Occurrence::kOptional;
  config.rules[2].occurrence = Occurrence::kOptional;
  for (size_t i = 3; i < config.rules.size(); ++i) {
    config.rules[i].topic = Topic::kSystem;
    config.rules[i].section = kSubmissionSection;
  }
  return config;
}

Config OpenCommonConfig(const std::vector<std::string>& benchmarks) {
  return {.name = "open_common", .rules = {BenchmarkName(benchmarks, "open")}};
}

void Append(std::vector<Config> added, std::vector<Config>* configs) {
  configs->insert(configs->end(), std::make_move_iterator(added.begin()),
                  std::make_move_iterator(added.end()));
}

}  // namespace assay::rules
