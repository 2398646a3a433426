// The score of an entry as its runs stand: which of them count, what the score may still become,
// how sure it is, and whether it converged faster than the reference. Computed from resources of
// the API alone, in minutes. Pure functions.

#ifndef COMMON_CLIENT_ENTRY_SCORE_H_
#define COMMON_CLIENT_ENTRY_SCORE_H_

#include <optional>
#include <string>
#include <vector>

#include "assay/v1/resources.pb.h"

#include "common/client/energy.h"
#include "common/client/json.h"
#include "common/client/touch_evidence.h"
#include "common/rules/score_interval.h"
#include "common/rules/score_preview.h"
#include "common/rules/score_window.h"
#include "common/rules/throughput.h"

namespace assay::client {

struct EntryScore {
  // Every run that was ever queued for the entry, by what became of it.
  int attempts = 0;
  int succeeded = 0;  // ended and were judged: the set
  int failed = 0;     // the infrastructure failed them, or a node's trainer; they stay as evidence
  int cancelled = 0;
  int remaining = 0;

  rules::WindowScore window;  // of the set; its positions count the set's runs only
  std::optional<rules::ScoreInterval> interval;
  // By how much the score may be off for the clocks that its runs were stamped with, at most; none
  // where a run that counts was not watched.
  std::optional<double> error_minutes;
  // The mean over the runs that the score is the mean of; none where one of them has none.
  std::optional<Energy> energy;
  // The weakest over the runs that make up the result; none while there are none.
  std::optional<TouchEvidence> touch;
  std::optional<rules::ScorePreview> preview;  // while runs are still to end
  // As the coordinator found it, or of the runs so far while it has found nothing.
  std::optional<v1::ReferenceConvergence> convergence;
  std::vector<std::string> parts;  // of each run, in the order given
};

// `runs` are all of the entry's, by number. What needs a throughput set's logs is left out.
EntryScore ScoreOfEntry(const v1::Submission& entry, const std::vector<v1::Run>& runs);

// What the entry's result is not, in one line; empty for a result of an MLPerf round.
std::string NotMlperfText(const v1::Submission& entry);

// The runs that make up the entry's result: those of the window, where it has one; of a throughput
// set those that pass the check.
std::vector<v1::Run> RunsThatCount(const v1::Submission& entry, const std::vector<v1::Run>& runs);

// How its round scores it. Of an entry from before the coordinator told that, a facility's own
// round is taken to score like the newest built-in one.
rules::Scoring ScoringOf(const v1::Submission& entry);

// What the score goes by of a run.
rules::RunScore RunScoreOf(const v1::Run& run);

// What its submitter may still leave out of a throughput set: see rules::Prunings, with positions
// in `runs`.
std::vector<rules::Pruning> PruningsOf(const v1::Submission& entry,
                                       const std::vector<v1::Run>& runs);

// Members attempts, interval, score_error_minutes, energy_joules, touch_assurance, preview, window,
// convergence.
void AddScore(const EntryScore& score, Json* json);

// The same in sentences for people: score_text, attempts_text, interval_text, ...
void AddTexts(const v1::Submission& entry, const EntryScore& score, Json* json);

}  // namespace assay::client

#endif  // COMMON_CLIENT_ENTRY_SCORE_H_
