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
};

// A run of which nothing was written down is self-reported, as are those that were imported.
// nullopt: there are no runs.
std::optional<TouchEvidence> TouchEvidenceOf(std::span<const v1::Run> runs);

// "observed in 3 of 5 runs, the others better; holes: W-NO-PID W-STAGED".
std::string TouchEvidenceText(const TouchEvidence& evidence);

// Members touch_assurance and, where there are any, touch_hole_codes, as a run has them.
void AddTouchEvidence(const TouchEvidence& evidence, Json* json);

}  // namespace assay::client

#endif  // COMMON_CLIENT_TOUCH_EVIDENCE_H_
