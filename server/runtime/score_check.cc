#include "server/runtime/score_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

#include "common/rules/score.h"
#include "common/status.h"
#include "server/core/types.h"
#include "server/runtime/judge_result.h"
#include "server/runtime/node_judge.h"
#include "server/runtime/rule_book.h"
#include "server/store/artifacts.h"
#include "server/store/reader.h"
#include "server/store/store.h"

namespace assay::runtime {
namespace {

// Another compiler may round the last bit of a mean in another way.
constexpr double kRelativeError = 1e-12;

bool IsSame(std::optional<double> a, std::optional<double> b) {
  if (!a.has_value() || !b.has_value()) return a.has_value() == b.has_value();
  if (!std::isfinite(*a) || !std::isfinite(*b))
    return *a == *b || (std::isnan(*a) && std::isnan(*b));
  return std::fabs(*a - *b) <= kRelativeError * std::max(std::fabs(*a), std::fabs(*b));
}

template <typename T>
std::string Written(const std::optional<T>& value) {
  if (!value.has_value()) return "none";
  if constexpr (std::is_same_v<T, double>) return absl::StrFormat("%.17g", *value);
  if constexpr (std::is_same_v<T, bool>) return *value ? "yes" : "no";
  return absl::StrCat(*value);
}

// "its time in ms is 61000, its log gives 60000"
class Differences {
 public:
  explicit Differences(std::string source) : source_(std::move(source)) {}

  template <typename T>
  void Compare(absl::string_view what, const std::optional<T>& kept, const std::optional<T>& made) {
    bool is_same = kept == made;
    if constexpr (std::is_same_v<T, double>) is_same = IsSame(kept, made);
    if (is_same) return;
    absl::StrAppend(&text_, text_.empty() ? "" : "; ", what, " is ", Written(kept), ", ", source_,
                    Written(made));
  }
  const std::string& text() const { return text_; }

 private:
  const std::string source_;
  std::string text_;
};

std::optional<int64_t> TimeOf(const core::RunFacts& facts) {
  if (!facts.run_start_ms.has_value() || !facts.run_stop_ms.has_value()) return std::nullopt;
  return *facts.run_stop_ms - *facts.run_start_ms;
}

std::string CompareRuns(const core::RunFacts& kept, const core::RunFacts& made,
                        const std::string& log) {
  Differences differences(absl::StrCat("by ", log, " it is "));
  differences.Compare("its time in ms", TimeOf(kept), TimeOf(made));
  differences.Compare("run_start in ms", kept.run_start_ms, made.run_start_ms);
  differences.Compare("whether it reached the target", kept.is_converged, made.is_converged);
  differences.Compare("whether it keeps the rules", kept.is_compliant, made.is_compliant);
  differences.Compare("its quality", kept.quality, made.quality);
  differences.Compare("its number of epochs", kept.epoch_count, made.epoch_count);
  return differences.text();
}

std::string CompareSets(const core::Submission& kept, const Verdict& made) {
  Differences differences("by the logs of its runs it is ");
  differences.Compare("the score in minutes", kept.score_minutes, made.score_minutes);
  using Number = std::optional<double>;
  const auto models = [](const std::optional<core::Throughput>& throughput) {
    return throughput.has_value() ? Number(throughput->model_count) : std::nullopt;
  };
  const auto minutes = [](const std::optional<core::Throughput>& throughput) {
    return throughput.has_value() ? Number(throughput->time_to_all_minutes) : std::nullopt;
  };
  differences.Compare("the number of models", models(kept.throughput), models(made.throughput));
  differences.Compare("the time to all models in minutes", minutes(kept.throughput),
                      minutes(made.throughput));
  const auto normalized = [](const std::optional<core::Convergence>& convergence) {
    return convergence.has_value() ? convergence->normalized_minutes : std::nullopt;
  };
  differences.Compare("the normalized score in minutes", normalized(kept.convergence),
                      normalized(made.convergence));
  return differences.text();
}

class ScoreCheck final : public store::VerdictCheck {
 public:
  absl::StatusOr<bool> Step(const std::string& database, const std::string& artifacts,
                            core::VerifyCounts* counts,
                            std::vector<core::StoredFault>* faults) override;

 private:
  absl::Status Open(const std::string& database, const std::string& artifacts);
  absl::Status NextSubmission(core::VerifyCounts* counts);
  absl::StatusOr<core::RunFacts> Judge(const core::Run& run) const;
  void CheckRun(core::Run* run, std::vector<core::StoredFault>* faults);
  void CheckScore(std::vector<core::StoredFault>* faults);
  std::string ObjectOf(const core::Run& run) const {
    return absl::StrCat("run ", run.id.ToString(), " of submission ", submission_.id.ToString());
  }

  std::string database_name_;
  std::unique_ptr<store::Reader> reader_;  // null before the first step
  std::unique_ptr<const store::ArtifactStore> artifacts_;
  std::unique_ptr<RuleBook> rules_;
  std::vector<core::Submission> page_;  // the next is the last
  std::string next_page_token_;
  bool is_last_page_ = false;

  core::Submission submission_;
  std::vector<core::Run> runs_;  // of it, that have succeeded; those before next_run_ as judged now
  size_t next_run_ = 0;
  bool is_unknown_ = false;  // a log of it cannot be judged, so nor can the set
  bool has_submission_ = false;
};

absl::Status ScoreCheck::Open(const std::string& database, const std::string& artifacts) {
  database_name_ = database.substr(database.rfind('/') + 1);
  ASSIGN_OR_RETURN(const store::Store::RulePacks packs, store::Store::ReadRulePacks(database));
  ASSIGN_OR_RETURN(rules_, LoadRuleBook({}, packs));
  artifacts_ = store::ArtifactStore::View(artifacts);
  ASSIGN_OR_RETURN(reader_, store::Reader::Open(database));
  return absl::OkStatus();
}

// Sets has_submission_ unless there is none left.
absl::Status ScoreCheck::NextSubmission(core::VerifyCounts* counts) {
  while (!has_submission_) {
    if (page_.empty() && is_last_page_) return absl::OkStatus();
    if (page_.empty()) {
      ASSIGN_OR_RETURN(
          core::Page<core::Submission> page,
          reader_->ListSubmissions({.viewer = {.sees_all = true}}, {.token = next_page_token_}));
      page_ = std::move(page.items);
      std::reverse(page_.begin(), page_.end());
      next_page_token_ = std::move(page.next_page_token);
      is_last_page_ = next_page_token_.empty();
      continue;
    }
    submission_ = std::move(page_.back());
    page_.pop_back();
    if (!IsTerminal(submission_.state)) continue;
    // What its importer says of it: there were no rules, so there is nothing to compare with.
    if (submission_.is_imported && submission_.rules.digest.empty()) {
      ++counts->uncomputed_score_count;
      continue;
    }
    if (submission_.is_imported &&
        absl::IsFailedPrecondition(rules_->JudgeLog(submission_).status())) {
      ++counts->uncomputed_score_count;
      continue;
    }
    ASSIGN_OR_RETURN(runs_, reader_->RunsOf(submission_.id));
    std::erase_if(runs_,
                  [](const core::Run& run) { return run.state != core::RunState::kSucceeded; });
    next_run_ = 0;
    is_unknown_ = false;
    has_submission_ = true;
  }
  return absl::OkStatus();
}

// As it was judged: an imported run by its log alone.
absl::StatusOr<core::RunFacts> ScoreCheck::Judge(const core::Run& run) const {
  if (!submission_.is_imported) {
    std::optional<core::Dataset> dataset;
    absl::StatusOr<core::Dataset> found = reader_->GetDataset(submission_.spec.dataset);
    if (found.ok()) dataset = *std::move(found);
    ASSIGN_OR_RETURN(const std::vector<core::Finding> seen,
                     reader_->FindingsOf(run.id, kNodeFindingsMax));
    ASSIGN_OR_RETURN(core::RunFacts facts,
                     JudgeResult(run, submission_, dataset, seen, *artifacts_, *rules_));
    // Some rules ask the dataset, or telemetry, which may have been removed since.
    const bool is_whole =
        std::all_of(run.artifacts.begin(), run.artifacts.end(),
                    [this](const core::ArtifactRef& file) { return artifacts_->Has(file.sha256); });
    if (!dataset.has_value() || !is_whole) facts.is_compliant = run.facts.is_compliant;
    return facts;
  }
  if (run.artifacts.empty()) return absl::NotFoundError("there is no log of it");
  ASSIGN_OR_RETURN(const std::unique_ptr<LogJudge> judge, rules_->JudgeLog(submission_));
  RETURN_IF_ERROR(artifacts_->ReadVerified(run.artifacts[0].sha256,
                                           [&](absl::string_view bytes) { judge->Add(bytes); }));
  return judge->Finish(core::Run{.number = run.number, .state = run.state});
}

void ScoreCheck::CheckRun(core::Run* run, std::vector<core::StoredFault>* faults) {
  const absl::StatusOr<core::RunFacts> facts = Judge(*run);
  if (!facts.ok()) {
    is_unknown_ = true;
    faults->push_back({database_name_, ObjectOf(*run),
                       absl::StrCat("it cannot be judged again: ", facts.status().message())});
    return;
  }
  const std::string log = run->artifacts.empty()    ? "its log"
                          : submission_.is_imported ? run->artifacts[0].file_name
                                                    : core::ResultFileName(*run);
  if (std::string differences = CompareRuns(run->facts, *facts, log); !differences.empty())
    faults->push_back({database_name_, ObjectOf(*run), std::move(differences)});
  run->facts = *facts;
}

void ScoreCheck::CheckScore(std::vector<core::StoredFault>* faults) {
  const std::string object = absl::StrCat("score of submission ", submission_.id.ToString());
  const absl::StatusOr<Verdict> verdict = rules_->Score(submission_, runs_);
  std::string problem =
      verdict.ok() ? CompareSets(submission_, *verdict)
                   : absl::StrCat("it cannot be computed again: ", verdict.status().message());
  if (!problem.empty()) faults->push_back({database_name_, object, std::move(problem)});
}

absl::StatusOr<bool> ScoreCheck::Step(const std::string& database, const std::string& artifacts,
                                      core::VerifyCounts* counts,
                                      std::vector<core::StoredFault>* faults) {
  if (reader_ == nullptr) RETURN_IF_ERROR(Open(database, artifacts));
  RETURN_IF_ERROR(NextSubmission(counts));
  if (!has_submission_) return false;
  if (next_run_ < runs_.size()) {
    CheckRun(&runs_[next_run_++], faults);
    return true;
  }
  // A cancelled one has no score, and of a log that cannot be judged there is a fault.
  if (!is_unknown_ && submission_.state != core::SubmissionState::kCancelled) {
    CheckScore(faults);
    ++counts->score_count;
  }
  has_submission_ = false;
  return true;
}

}  // namespace

std::unique_ptr<store::VerdictCheck> MakeScoreCheck() {
  return std::make_unique<ScoreCheck>();
}

}  // namespace assay::runtime
