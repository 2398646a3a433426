// All that is known of the score of one folder of results: by the round's own rules, and what the
// official tools say of it. (Rules specification, sections 4.5 and 5.)

#ifndef COMMON_PACKAGE_SET_SCORE_H_
#define COMMON_PACKAGE_SET_SCORE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "common/package/results_tree.h"
#include "common/rules/rcp.h"
#include "common/rules/score_interval.h"
#include "common/rules/score_window.h"
#include "common/rules/summary.h"

namespace assay::package {

// What the official tools make of the folder. They know rounds from 1.0 on; v0.7 is judged with the
// rules of 1.0 there.
struct OfficialScore {
  std::string rule_set;              // hpc-1.0.0
  std::vector<bool> compliant;       // for each of the folder's runs
  rules::TimeToSolution documented;  // by the document: who reached the target counts
  rules::Summary summary;            // of a strong set
  rules::Throughput throughput;      // of a weak one
  rules::ConvergenceSubmission submission;
  rules::ConvergenceVerdict pruned, full;  // against the pruned reference points, and against all
};

struct SetScore {
  JudgedFolder judged;  // by the round's rules; its logs are dropped
  rules::WindowScore window;
  std::optional<rules::ScoreInterval> interval;  // of a strong set with a score
  std::optional<double> shipped_scaling;         // of scaling.json
  // Joules for each run, from its power logs; empty where the folder has none.
  std::vector<std::optional<double>> energies;
  std::optional<double> total_scale;      // T: nodes times accelerators (at least 1) as described
  std::optional<OfficialScore> official;  // none for a facility's own round
  std::vector<std::string> notes;         // what a person should know beside the score

  bool is_weak() const { return judged.folder.scaling == "weak"; }
  bool is_scored() const {
    return is_weak() ? judged.throughput.has_value() && judged.throughput->is_scored
                     : judged.score.minutes.has_value();
  }
};

// Reads, judges and scores every log of the folder. A log that cannot be read is an error; damaged
// power logs and scaling files become notes. A set in which every run fails has a score like any
// other: none, with the reason.
absl::StatusOr<SetScore> ScoreFolder(const ResultFolder& folder, const rules::RuleSet& rules);

}  // namespace assay::package

#endif  // COMMON_PACKAGE_SET_SCORE_H_
