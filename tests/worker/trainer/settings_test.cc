// What is said of an entry before it is queued, compared with what the trainer says of its run
// specs: of generated entries, both take the same ones.

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/json_reader.h"
#include "common/rules/benchmark_settings.h"
#include "common/rules/extensions.h"
#include "common/rules/ranks.h"
#include "common/rules/trainer_settings.h"
#include "tests/support/status_matchers.h"
#include "tests/worker/trainer/run_specs.h"
#include "worker/data/sampler.h"
#include "worker/trainer/spec.h"
#include "worker/trainer/workload.h"

namespace assay {
namespace {

using rules::Setting;
using ::testing::IsEmpty;
using testing::SetHyperparameter;
using testing::SmallRun;

constexpr uint32_t kSeed = 20261125;
constexpr int kEntryCount = 6000;  // of each benchmark

class EntryMaker {
 public:
  explicit EntryMaker(std::string benchmark) : benchmark_(std::move(benchmark)) {}

  v1::RunSpec Make() {
    v1::RunSpec run = SmallRun();
    run.set_benchmark(benchmark_);
    run.clear_hyperparameters();
    run.set_division(IsOneIn(3) ? "closed" : "open");
    run.set_round(IsOneIn(3) ? "hpc-3.0.0" : "a-facility");
    run.set_rendezvous_address("localhost:1");
    run.set_node_count(static_cast<int32_t>(1 + Below(4)));
    run.set_ranks_per_node(static_cast<int32_t>(1 + Below(2)));
    run.mutable_dataset()->set_train_sample_count(int64_t{1} << (3 + Below(6)));
    run.mutable_dataset()->set_eval_sample_count(int64_t{1} << (2 + Below(6)));
    // Often one that the ranks share evenly.
    const int64_t ranks = int64_t{run.node_count()} * run.ranks_per_node();
    SetHyperparameter(&run, "global_batch_size",
                      absl::StrCat(IsOneIn(10) ? 1 + Below(4096) : ranks << Below(6)));
    const rules::BenchmarkSettings& settings = *rules::FindBenchmarkSettings(benchmark_);
    for (const std::string& key : rules::KnownHyperparameters()) {
      const Setting* const setting = settings.Find(key);
      if (setting == nullptr || key == rules::kGlobalBatchKey || !IsOneIn(3)) continue;
      SetHyperparameter(&run, key, IsOneIn(12) ? Odd() : Usual(*setting));
    }
    return run;
  }

 private:
  uint32_t Below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }
  bool IsOneIn(uint32_t count) { return Below(count) == 0; }

  std::string Number(const Setting& setting) {
    const rules::Bounds& bounds = setting.bounds;
    if (IsOneIn(8) && bounds.min) return absl::StrCat(*bounds.min);
    if (IsOneIn(8) && bounds.max) return absl::StrCat(*bounds.max);
    if (IsOneIn(8) && setting.closed) return absl::StrCat(*setting.closed);
    if (setting.kind == Setting::Kind::kInteger)
      return absl::StrCat((int64_t{1} + Below(6)) * setting.multiple_of);
    constexpr const char* kNumbers[] = {"0.25", "0.9", "1", "2", "0", "1e-3", "30"};
    return kNumbers[Below(std::size(kNumbers))];
  }
  std::string Usual(const Setting& setting) {
    if (setting.key == rules::kSpatialGridKey)
      return absl::StrCat("[", 1 + Below(2), ", ", 1 + Below(2), "]");
    switch (setting.kind) {
      case Setting::Kind::kText:
        return setting.choices.empty()
                   ? "\"conv2\""
                   : absl::StrCat(
                         "\"",
                         setting.choices[Below(static_cast<uint32_t>(setting.choices.size()))],
                         "\"");
      case Setting::Kind::kNumbers: {
        std::string list;
        for (uint32_t count = Below(4); count > 0; --count)
          absl::StrAppend(&list, list.empty() ? "" : ", ", Number(setting));
        return absl::StrCat("[", list, "]");
      }
      default:
        return Number(setting);
    }
  }
  std::string Odd() {
    constexpr const char* kValues[] = {"-1",   "0",  "0.5",  "1e30",       "\"x\"",  "true",
                                       "null", "[]", "[1]",  "[1, \"a\"]", "[2, 1]", "-0.5",
                                       "1.0",  "{}", "\"\"", "1e-320"};
    return kValues[Below(std::size(kValues))];
  }

  const std::string benchmark_;
  std::mt19937 random_{kSeed};
};

std::vector<rules::Finding> Judge(const v1::RunSpec& run) {
  rules::Hyperparameters values;
  std::vector<rules::Finding> findings;
  for (const v1::Hyperparameter& parameter : run.hyperparameters()) {
    values.emplace(parameter.key(), ParseJson(parameter.json_value()).value);
    if (!rules::IsClosedMlperf(run.division(), run.round())) continue;
    if (auto finding = rules::CheckExtension(parameter.key(), values.at(parameter.key())))
      findings.push_back(*std::move(finding));
  }
  for (const auto& [name, text] : run.dataset().parameters())
    values.emplace(name, ParseJson(text).value);
  const std::vector<rules::Finding> of_ranks =
      rules::CheckRanks(values, {.benchmark = run.benchmark(),
                                 .nodes = run.node_count(),
                                 .ranks_per_node = run.ranks_per_node()});
  findings.insert(findings.end(), of_ranks.begin(), of_ranks.end());
  if (!findings.empty()) return findings;
  return rules::CheckSettings(values, {.benchmark = run.benchmark(),
                                       .division = run.division(),
                                       .round = run.round(),
                                       .ranks = int64_t{run.node_count()} * run.ranks_per_node(),
                                       .train_samples = run.dataset().train_sample_count(),
                                       .eval_samples = run.dataset().eval_sample_count()});
}

// As far as the trainer gets without data and model.
absl::Status StartTrainer(const v1::RunSpec& run) {
  const absl::StatusOr<TrainerSpec> spec = MakeTrainerSpec(run);
  if (!spec.ok()) return spec.status();
  const DataPlan plan = (*MakeWorkload(*spec))->data();
  for (const bool is_training : {true, false}) {
    const auto sampler = data::Sampler::Create(
        {.samples =
             is_training ? run.dataset().train_sample_count() : run.dataset().eval_sample_count(),
         .world_size = spec->group_count(),
         .local_batch = spec->local_batch_size,
         .remainder = is_training ? plan.train_remainder : plan.eval_remainder});
    if (!sampler.ok()) return sampler.status();
  }
  return absl::OkStatus();
}

// What the trainer finds only when it has a model.
bool IsOfTheModel(const rules::Finding& finding) {
  return finding.rule_id == "R-SET-002" && (finding.key == rules::kGradientSkipLayerSetting ||
                                            finding.key == "local_eval_batch_size");
}

class SettingsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(SettingsTest, WhatIsTakenIsWhatTheTrainerTakes) {
  EntryMaker maker(GetParam());
  int taken_count = 0;
  for (int i = 0; i < kEntryCount; ++i) {
    const v1::RunSpec run = maker.Make();
    const std::vector<rules::Finding> findings = Judge(run);
    const absl::Status started = StartTrainer(run);
    taken_count += findings.empty() ? 1 : 0;
    if (findings.empty()) {
      ASSERT_THAT(started, testing::IsOk()) << "seed " << kSeed << "\n" << run.DebugString();
    } else if (!std::all_of(findings.begin(), findings.end(), IsOfTheModel)) {
      ASSERT_FALSE(started.ok()) << "seed " << kSeed << " " << findings.front().rule_id << " "
                                 << findings.front().key << "\n"
                                 << run.DebugString();
    }
  }
  // Neither always nor never.
  EXPECT_GT(taken_count, kEntryCount / 50);
  EXPECT_LT(taken_count, kEntryCount / 2);
}

INSTANTIATE_TEST_SUITE_P(All, SettingsTest, ::testing::Values("cosmoflow", "deepcam"));

TEST(SettingRulesTest, SayWhatIsExpected) {
  const std::vector<rules::Finding> findings =
      rules::CheckSettings({{"cube_edge", 33}, {"opt_name", "adamw"}, {"base_filter_count", 8}},
                           {.benchmark = "cosmoflow", .division = "closed", .round = "hpc-3.0.0"});
  std::vector<std::string> texts;
  for (const rules::Finding& finding : findings)
    texts.push_back(absl::StrCat(finding.rule_id, " ", finding.key, ": ", finding.expected));
  EXPECT_THAT(texts, ::testing::UnorderedElementsAre(
                         "R-SET-002 cube_edge: a whole number from 32 to 512, a multiple of 32",
                         "R-SET-002 opt_name: one of \"sgd\"",
                         "R-SET-003 base_filter_count: 32 in the closed division"));
}

TEST(SettingRulesTest, KnowNothingOfOtherBenchmarks) {
  EXPECT_THAT(rules::CheckSettings({{"opt_name", 1}}, {.benchmark = "shapes"}), IsEmpty());
}

}  // namespace
}  // namespace assay
