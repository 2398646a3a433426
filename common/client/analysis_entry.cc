#include "common/client/analysis_entry.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

#include "common/analysis/run_times.h"
#include "common/client/artifacts.h"
#include "common/client/energy.h"
#include "common/client/entry_score.h"
#include "common/client/pages.h"
#include "common/package/system_description.h"
#include "common/rules/check.h"
#include "common/status.h"

namespace assay::client {
namespace {

int64_t Count(const JsonValue& description, absl::string_view name) {
  int64_t count = 0;
  return absl::SimpleAtoi(package::MemberText(description, name), &count) && count > 0 ? count : 0;
}

// The machine as a system description has it. False if it does not say.
bool TakeMachine(const JsonValue& description, analysis::Entry* entry) {
  const int64_t nodes = Count(description, "number_of_nodes");
  entry->processors = nodes * Count(description, "host_processors_per_node");
  entry->accelerators = nodes * Count(description, "accelerators_per_node");
  entry->unit_model =
      package::MemberText(description, entry->accelerators > 0 ? "accelerator_model_name"
                                                               : "host_processor_model_name");
  return entry->units() > 0;
}

int64_t WholeNumber(const std::optional<JsonValue>& value) {
  return std::max<int64_t>(0, value ? value->AsInt64().value_or(0) : 0);
}

// The machine as a log has it: nodes stand for processors where there are no accelerators.
void TakeMachine(const rules::Facts& facts, analysis::Entry* entry) {
  constexpr int64_t kSane = 100'000'000;
  const int64_t nodes = WholeNumber(facts.number_of_nodes);
  const int64_t accelerators = WholeNumber(facts.accelerators_per_node);
  if (nodes > kSane || accelerators > kSane) return;
  entry->processors = nodes;
  entry->accelerators = nodes * accelerators;
}

const v1::ArtifactRef* LogOf(const v1::Run& run) {
  const auto found = std::find_if(
      run.artifacts().begin(), run.artifacts().end(),
      [](const v1::ArtifactRef& artifact) { return package::IsResultFile(artifact.file_name()); });
  return found == run.artifacts().end() ? nullptr : &*found;
}

}  // namespace

absl::StatusOr<analysis::Entry> ReadAnalysisEntry(const Client& client,
                                                  const v1::Submission& submission,
                                                  const rules::RuleSet& rules) {
  const v1::SubmissionSpec& spec = submission.spec();
  analysis::Entry entry = {.organization = spec.organization(),
                           .system = spec.system(),
                           .benchmark = spec.benchmark(),
                           .division = spec.division(),
                           .is_weak = submission.scaling() == "weak"};
  if (submission.has_score_minutes()) entry.score_minutes = submission.score_minutes();
  ASSIGN_OR_RETURN(const std::vector<v1::Run> runs, AllRunsOf(client, submission.name()));
  const std::vector<v1::Run> counted = RunsThatCount(submission, runs);
  entry.runs_outside = static_cast<int>(
      std::count_if(runs.begin(), runs.end(),
                    [](const v1::Run& run) { return run.state() == v1::Run::SUCCEEDED; }) -
      std::ssize(counted));
  for (const v1::Run& run : counted) {
    const v1::ArtifactRef* artifact = LogOf(run);
    if (artifact == nullptr) continue;
    ASSIGN_OR_RETURN(const std::string log, DownloadArtifact(client, *artifact));
    const rules::CheckResult result = rules::Check(log, rules);
    if (entry.runs.empty()) TakeMachine(result.facts, &entry);
    entry.runs.push_back(analysis::ReadRunTimes(log, result.facts));
    // Of components it is not comparable between systems.
    if (const std::optional<Energy> energy = EnergyOf(run); energy && energy->is_node)
      entry.runs.back().energy_joules = energy->joules;
  }
  return entry;
}

analysis::Entry AnalysisEntryOf(const package::JudgedFolder& judged) {
  const package::ResultFolder& folder = judged.folder;
  analysis::Entry entry = {.organization = folder.organization,
                           .system = folder.system,
                           .benchmark = folder.benchmark,
                           .division = judged.division(),
                           .is_weak = folder.scaling == "weak",
                           .score_minutes = judged.score.minutes};
  const bool is_described = TakeMachine(folder.system_description, &entry);
  if ((!is_described || entry.is_weak) && !judged.runs.empty())
    TakeMachine(judged.runs.front().result.facts, &entry);
  for (const package::JudgedRun& run : judged.runs)
    entry.runs.push_back(analysis::ReadRunTimes(run.log, run.result.facts));
  return entry;
}

}  // namespace assay::client
