#include "common/rules/fact_collector.h"

#include <algorithm>
#include <utility>

namespace assay::rules {
namespace {

constexpr size_t kUnpairedMax = 1 << 16;  // staging_start without stop, or the other way round

// The first text wins; what is no text is left out.
void TakeText(const JsonValue& value, std::string* text) {
  if (text->empty() && value.AsString() != nullptr) *text = *value.AsString();
}

void TakeValue(const JsonValue& value, std::optional<JsonValue>* fact) {
  if (!*fact) *fact = value;
}

// The demand of every convergence rule: 0 < x <= target, or target <= x, which is at most 1 where
// the target is a share.
bool Meets(const Benchmark& benchmark, double quality) {
  if (benchmark.lower_is_better) return quality > 0 && quality <= benchmark.target;
  return quality >= benchmark.target && (quality <= 1 || benchmark.target > 1);
}

}  // namespace

FactCollector::FactCollector(const RuleSet& rules)
    : rules_(&rules), qualities_(rules.data().benchmarks.size()) {
  for (const Benchmark& benchmark : rules.data().benchmarks)
    quality_keys_.push_back(rules.KeyNumber(benchmark.quality_key));
}

void FactCollector::Add(const Record& record) {
  AddQuality(record);
  const auto key = static_cast<FactKey>(record.key);
  switch (key) {
    case FactKey::kOrg:
      return TakeText(record.value, &facts_.organisation);
    case FactKey::kPlatform:
      return TakeText(record.value, &facts_.platform);
    case FactKey::kSubmissionStatus:
      return TakeText(record.value, &facts_.submission_status);
    case FactKey::kDivision:
      return TakeText(record.value, &facts_.division);
    case FactKey::kBenchmark:
      return TakeText(record.value, &facts_.benchmark);
    case FactKey::kSeed:
      return AddSeed(record);
    case FactKey::kGlobalBatchSize:
      return TakeValue(record.value, &facts_.global_batch_size);
    case FactKey::kNumberOfNodes:
      return TakeValue(record.value, &facts_.number_of_nodes);
    case FactKey::kAcceleratorsPerNode:
      return TakeValue(record.value, &facts_.accelerators_per_node);
    case FactKey::kTrainSamples:
      return TakeValue(record.value, &facts_.train_samples);
    case FactKey::kEvalSamples:
      return TakeValue(record.value, &facts_.eval_samples);
    case FactKey::kOptName:
      return TakeValue(record.value, &facts_.opt_name);
    case FactKey::kEpochStart:
      if (!has_run_stop_) ++facts_.epochs;
      return;
    case FactKey::kRunStart:
    case FactKey::kRunStop:
    case FactKey::kInitStart:
    case FactKey::kInitStop:
    case FactKey::kStagingStart:
    case FactKey::kStagingStop:
      return AddTiming(key, record);
  }
}

void FactCollector::AddTiming(FactKey key, const Record& record) {
  if (key == FactKey::kRunStart) {
    latest_run_start_ms_ = record.time_ms;
  } else if (key == FactKey::kRunStop) {
    AddRunStop(record);
  } else if (key == FactKey::kInitStart) {
    init_start_ms_ = std::min(init_start_ms_.value_or(record.time_ms), record.time_ms);
  } else if (key == FactKey::kInitStop) {
    if (init_start_ms_ && !facts_.init_ms) facts_.init_ms = record.time_ms - *init_start_ms_;
  } else if (key == FactKey::kStagingStart) {
    if (!facts_.staging_start_ms) facts_.staging_start_ms = record.time_ms;
    if (staging_starts_.size() < kUnpairedMax) staging_starts_.push_back(record.time_ms);
    PairStaging();
  } else {
    if (staging_stops_.size() < kUnpairedMax) staging_stops_.push_back(record.time_ms);
    PairStaging();
  }
  if (facts_.run_start_ms) return;  // the pair below was complete before
  if (latest_run_start_ms_ && latest_run_stop_ms_) {
    facts_.run_start_ms = latest_run_start_ms_;
    facts_.run_stop_ms = latest_run_stop_ms_;
  }
}

void FactCollector::AddRunStop(const Record& record) {
  latest_run_stop_ms_ = record.time_ms;
  has_run_stop_ = true;
  const JsonValue* status = record.metadata.Find("status");
  if (status != nullptr) TakeText(*status, &facts_.run_status);
}

// The benchmark may be named later, so the line counts for each that has this quality.
void FactCollector::AddQuality(const Record& record) {
  for (size_t i = 0; i < qualities_.size(); ++i) {
    if (quality_keys_[i] != record.key) continue;
    const std::optional<double> number = record.value.ToDouble();
    if (!number) return;
    const Benchmark& benchmark = rules_->data().benchmarks[i];
    Quality& quality = qualities_[i];
    if (!has_run_stop_) quality.last_before_stop = number;
    const bool is_better = !quality.best || (benchmark.lower_is_better ? *number < *quality.best
                                                                       : *number > *quality.best);
    if (is_better) quality.best = number;
    quality.reached_target |= Meets(benchmark, *number);
  }
}

void FactCollector::AddSeed(const Record& record) {
  seed_bytes_ += record.value_json.size();
  if (seed_bytes_ <= kSeedBytesMax) facts_.seeds.push_back(record.value);
}

// The first start belongs to the first stop, whichever came first.
void FactCollector::PairStaging() {
  if (staging_starts_.empty() || staging_stops_.empty()) return;
  facts_.staging_ms =
      facts_.staging_ms.value_or(0) + staging_stops_.front() - staging_starts_.front();
  staging_starts_.pop_front();
  staging_stops_.pop_front();
}

Facts FactCollector::Get() const {
  Facts facts = facts_;
  if (!facts.run_start_ms) facts.run_start_ms = latest_run_start_ms_;
  if (!facts.run_stop_ms) facts.run_stop_ms = latest_run_stop_ms_;
  const Benchmark* benchmark = rules_->FindBenchmark(facts.benchmark);
  if (benchmark == nullptr) return facts;
  const auto index = static_cast<size_t>(benchmark - rules_->data().benchmarks.data());
  facts.quality = qualities_[index].last_before_stop;
  facts.best_quality = qualities_[index].best;
  facts.reached_target = qualities_[index].reached_target;
  return facts;
}

}  // namespace assay::rules
