// The rounds that this coordinator knows, and what their rules say about a request, a log and a
// submission. The only place where the server calls common/rules.

#ifndef SERVER_RUNTIME_RULE_BOOK_H_
#define SERVER_RUNTIME_RULE_BOOK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "common/rules/ruleset.h"
#include "server/core/types.h"

namespace assay::runtime {

// A round as GetServerInfo and ListRounds show it.
struct RoundInfo {
  std::string name;
  std::string digest;
  bool is_mlperf_result = false;
  std::string label;
  std::vector<std::string> benchmarks;
};

// What the rules say before anything runs.
struct Plan {
  core::SubmissionSpec spec;  // defaults filled in
  core::RuleFacts rules;
  std::vector<core::Finding> findings;
  std::optional<core::BorrowingRecord> borrowing;  // once its borrowing, if any, was checked
};

// What the rules say about an entry that borrows.
struct BorrowingVerdict {
  std::vector<core::Finding> findings;
  core::BorrowingRecord record;
};

// The verdict on a set of runs.
struct Verdict {
  std::optional<double> score_minutes;         // neither: INVALID
  std::optional<core::Throughput> throughput;  // of a weak-scaling set
  // Of a closed set in a round with reference points. The score is not multiplied with it.
  std::optional<core::Convergence> convergence;
  std::vector<core::Finding> findings;
  std::string reason;
};

// Judges one log, whose bytes come in pieces of any size. Its memory does not grow with the log.
// Not thread-safe.
class LogJudge {
 public:
  virtual ~LogJudge() = default;
  virtual void Add(absl::string_view bytes) = 0;
  // What the rules say of all bytes added and of `run`, whose first touch they compare with the
  // log. Never fails: an unreadable log is a finding. Call once; Add nothing afterwards.
  virtual core::RunFacts Finish(const core::Run& run) = 0;
  // Whether a first pass that did not come from storage is a violation (R-IOB-001).
  virtual bool DemandsFirstPass() const = 0;
  // Whether data in memory when the clock starts is a violation (R-TIM-004, R-TIM-005, R-TIM-007).
  virtual bool DemandsColdData() const = 0;
  // What the first touch on every node has to be, at least (R-TIM-008).
  virtual rules::Assurance DemandedAssurance() const = 0;
};

// Immutable after construction; thread-safe. A submission is judged by the rules that accepted it,
// told by their digest, and by no others: by the round of its name where that still has the digest,
// else by a kept pack. FAILED_PRECONDITION, with both digests, if neither has it.
class RuleBook {
 public:
  virtual ~RuleBook() = default;

  virtual std::vector<RoundInfo> Rounds() const = 0;

  // The rules of these rounds as packs (common/rules/pack.h), by digest: to be kept.
  virtual std::map<std::string, std::string> Packs() const = 0;

  // Fills in defaults and checks the spec. NOT_FOUND for an unknown round, with the known ones;
  // INVALID_ARGUMENT for a benchmark that the round does not have. What the rules refuse is in
  // `findings`, not in the status.
  virtual absl::StatusOr<Plan> PlanSubmission(const core::SubmissionSpec& spec) const = 0;

  // What the spec's round says against this dataset. Nothing if there is no such round.
  virtual std::vector<core::Finding> CheckDataset(const core::SubmissionSpec& spec,
                                                  const core::Dataset& dataset) const = 0;

  // Judges the hyperparameters of `spec`, with its defaults filled in, which are to be those of
  // `lender` in place of those of `own`. `borrower` is the entry that does so already, if any.
  virtual BorrowingVerdict CheckBorrowing(const core::SubmissionSpec& spec,
                                          const core::Submission& own,
                                          const core::Submission& lender,
                                          core::SubmissionId borrower) const = 0;

  // For one log of a run of `submission`, which must outlive the judge as this book must.
  virtual absl::StatusOr<std::unique_ptr<LogJudge>> JudgeLog(
      const core::Submission& submission) const = 0;

  // Judges a log that is in memory already.
  absl::StatusOr<core::RunFacts> CheckLog(absl::string_view log, const core::Submission& submission,
                                          const core::Run& run) const {
    absl::StatusOr<std::unique_ptr<LogJudge>> judge = JudgeLog(submission);
    if (!judge.ok()) return judge.status();
    (*judge)->Add(log);
    return (*judge)->Finish(run);
  }

  // Judges the succeeded runs of a submission, in order of their numbers: a time to solution, or
  // for one whose scaling is weak a throughput. Of more runs than the round demands those count
  // that ScoreWindows chooses, unless it is imported: history is scored as it was.
  virtual absl::StatusOr<Verdict> Score(const core::Submission& submission,
                                        const std::vector<core::Run>& runs) const = 0;
};

// The rounds built into common/rules and those read from `round_paths` (TOML). INVALID_ARGUMENT
// with all problems if a file does not define a round, ALREADY_EXISTS if two have one name. Of
// `kept_packs`, by digest, those that do not hold what they are kept as are left out, and logged.
absl::StatusOr<std::unique_ptr<RuleBook>> LoadRuleBook(
    const std::vector<std::string>& round_paths,
    const std::map<std::string, std::string>& kept_packs = {});

}  // namespace assay::runtime

#endif  // SERVER_RUNTIME_RULE_BOOK_H_
