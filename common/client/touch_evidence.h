// How well the first touch of the data was seen, as people read it beside a time. Pure functions of
// resources of the API.

#ifndef COMMON_CLIENT_TOUCH_EVIDENCE_H_
#define COMMON_CLIENT_TOUCH_EVIDENCE_H_

#include <optional>
#include <set>
#include <span>
#include <string>

#include "assay/v1/resources.pb.h"

#include "common/client/json.h"

namespace assay::client {

// Of the runs that a score is of: the weakest stands for all of them.
struct TouchEvidence {
  std::string assurance;        // proven | observed | self-reported
  size_t weakest_count = 0;     // of so many runs it is that
  size_t run_count = 0;         // at least one
  std::set<std::string> holes;  // codes of any of them
  // The earliest after its run_start, and how far that may be off: not known where its node's agent
  // did not say how late it looked.
  std::optional<double> earliest_ms;
  std::optional<double> error_ms;
};

// From run_start to the run's first touch; nullopt: none was witnessed, or there is no run_start.
std::optional<double> TouchAfterStartMs(const v1::Run& run);
std::optional<double> TouchErrorMs(const v1::Run& run);
// "1.3 ms after run_start, +-5.9 ms", "2.0 ms before run_start".
std::string TouchTimeText(double after_ms, std::optional<double> error_ms);

// A run of which nothing was written down is self-reported, as are those that were imported.
// nullopt: there are no runs.
std::optional<TouchEvidence> TouchEvidenceOf(std::span<const v1::Run> runs);

// "observed in 3 of 5 runs, better in the others; the earliest 1.3 ms after run_start, +-5.9 ms;
// holes: W-NO-PID W-STAGED".
std::string TouchEvidenceText(const TouchEvidence& evidence);

// Members touch_assurance and, where there are any, touch_hole_codes, touch_after_run_start_ms and
// touch_error_ms, as a run has them; of times the earliest.
void AddTouchEvidence(const TouchEvidence& evidence, Json* json);

}  // namespace assay::client

#endif  // COMMON_CLIENT_TOUCH_EVIDENCE_H_
