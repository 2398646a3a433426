// What a run did, as its log tells it: how its quality came to the target, and where its time went.
// Pure functions.

#ifndef COMMON_CLIENT_RUN_COURSE_H_
#define COMMON_CLIENT_RUN_COURSE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/client/json.h"

namespace assay::client {

// One evaluation.
struct QualityPoint {
  double seconds = 0;             // from run_start
  std::optional<double> epoch;    // as the log numbers it; none: it does not say
  std::optional<double> samples;  // trained on until then; none where the log does not tell
  double quality = 0;
  int64_t line = 0;  // of the log, from 1
};

// Seconds, by the log. Intervals of one kind that overlap count once.
struct PhaseTimes {
  double init = 0;             // before run_start
  double untimed_staging = 0;  // before run_start
  double staging = 0;          // on the clock, as all that follows
  double training = 0;         // epochs without their evaluation
  double evaluation = 0;
  double rest = 0;
  double total = 0;  // from run_start to run_stop
};

struct RunCourse {
  std::vector<QualityPoint> points;  // the first kQualityPointsMax
  std::optional<PhaseTimes> phases;  // none without run_start and run_stop
};

// So many evaluations are kept of a log; those that follow are left out.
inline constexpr size_t kQualityPointsMax = 10'000;

// Reads a log. `quality_key` as its round names it ("eval_error").
RunCourse ReadCourse(absl::string_view log, absl::string_view quality_key);

// What a course came to.
struct QualityReached {
  std::optional<QualityPoint> best;
  std::optional<QualityPoint> last;
  std::optional<QualityPoint> at_target;  // the first as good as the target
};
QualityReached ReachedBy(const RunCourse& course, double target, bool lower_is_better);

// {"points": [...], "phases": {...}}.
Json CourseJson(const RunCourse& course);

}  // namespace assay::client

#endif  // COMMON_CLIENT_RUN_COURSE_H_
