// Judges a log: exactly as the reference checker does, with the same verdict and the same classes
// of errors, but saying which rule, which line and what to do. Pure functions of their arguments.

#ifndef COMMON_RULES_CHECK_H_
#define COMMON_RULES_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/json_value.h"
#include "common/mllog.h"
#include "common/rules/finding.h"
#include "common/rules/ruleset.h"

namespace assay::rules {

// Seeds that a log may repeat without end are kept up to so many bytes of JSON text.
inline constexpr size_t kSeedBytesMax = 64 << 10;

// What a log says about its run. Times are milliseconds since the Unix epoch as logged; of a key
// that occurs more than once the first value counts where nothing else is said.
struct Facts {
  std::string organisation, platform, submission_status;
  std::string division, benchmark;
  std::string run_status;  // metadata "status" of run_stop; empty if absent or no text
  // The first run_stop after a run_start, and the last run_start before it (section 5.1).
  std::optional<double> run_start_ms, run_stop_ms;
  std::optional<double> init_ms;           // first init_start to first init_stop
  std::optional<double> staging_start_ms;  // nullopt: the log has no staging keys
  std::optional<double> staging_ms;        // sum over pairs of staging_start, staging_stop
  int64_t epochs = 0;             // epoch_start records before run_stop; the whole file without one
  std::optional<double> quality;  // the benchmark's quality, last value before run_stop
  std::optional<double> best_quality;  // of the whole file
  bool reached_target = false;         // some line of the whole file meets the target
  std::vector<JsonValue> seeds;        // the first kSeedBytesMax bytes of them
  std::optional<JsonValue> global_batch_size, number_of_nodes, accelerators_per_node;
  std::optional<JsonValue> train_samples, eval_samples, opt_name;
  int64_t record_count = 0;
  int64_t parse_error_count = 0;

  // run_stop - run_start, if both are known.
  std::optional<double> run_ms() const {
    if (!run_start_ms || !run_stop_ms) return std::nullopt;
    return *run_stop_ms - *run_start_ms;
  }
};

struct CheckResult {
  bool pass = false;
  std::vector<Finding> findings;  // errors by line, then warnings
  Facts facts;
  std::string rule_set;  // its name
  std::string digest;    // and what it hashed to
};

struct CheckOptions {
  bool warnings_are_errors = false;
};

// Judges a whole log file.
CheckResult Check(absl::string_view log_bytes, const RuleSet& rules, CheckOptions options = {});

// Judges a log while it is written. A finding comes with the line that makes it certain; what only
// the end of the file can show (keys that are missing, a target never met) comes with Finish.
// A later config may re-declare a key and so forgive a finding already given: the verdict is
// Finish's. Not thread-safe. `rules` must outlive it.
class LiveChecker {
 public:
  explicit LiveChecker(const RuleSet& rules);
  ~LiveChecker();
  LiveChecker(LiveChecker&&) noexcept;
  LiveChecker& operator=(LiveChecker&&) noexcept;

  // Takes the next line of the file, without its end; the result is what it violates.
  std::vector<Finding> AddLine(absl::string_view line);
  // The facts so far.
  Facts facts() const;
  // The same result as Check of all lines so far; more lines may follow.
  CheckResult Finish(CheckOptions options = {}) const;

 private:
  friend class StreamChecker;
  class Engine;
  std::unique_ptr<Engine> engine_;
};

// Judges a log that comes in pieces of any size, as read from a file or a pipe. Its memory does not
// grow with the log: it holds one line (at most kMllogLineBytesMax), and per key of the round the
// first value and the last violation. Not thread-safe. `rules` must outlive it.
class StreamChecker {
 public:
  explicit StreamChecker(const RuleSet& rules) : checker_(rules) {}

  void Add(absl::string_view bytes);
  // The same result as Check of all bytes. Call once; Add nothing afterwards.
  CheckResult Finish(CheckOptions options = {});

 private:
  void Take(absl::string_view line, bool is_too_long);

  LiveChecker checker_;
  MllogLineStream lines_;
};

// The first read of a run's dataset, as its node saw it.
struct FirstTouch {
  int64_t touch_ms = 0;       // since the Unix epoch, by the clock that stamps run_start too
  std::string path;           // file that was read first
  std::string witness;        // who saw it: "fanotify on n-07"
  int64_t tolerance_ms = 0;   // resolution of the comparison
  bool is_attributed = true;  // made by a process of the run; false: by somebody on the node
};

// R-TIM-001: the clock of a run must start before its data is touched (HPC rules, timing). A run
// whose run_start is later than the witnessed touch by more than the tolerance gets a finding that
// carries both stamps; so does one without run_start (R-TIM-002). Staging that the round leaves off
// the clock ends before: pass the touch that follows staging_stop.
// R-TIM-006, a warning, in place of both: the touch is not attributed, so it accuses nobody.
std::vector<Finding> CheckFirstTouch(std::optional<double> run_start_ms, const FirstTouch& touch);

// R-PAU-001, a warning: a rank was stopped by a signal; `found` says which, when and for how long.
Finding StoppedRank(std::string found);

// A warning of what a node saw, in `found` with the node, when and how much. R-CLK-001: its wall
// clock was set during a run. R-CLK-002: its clocks did not keep to the hardware's. R-PAU-002: the
// step that watches the run stood still. R-PAU-003, R-PAU-004: a rank was traced, or its control
// group frozen. R-PAU-005: no rank of the node worked. R-TIM-004: data was in memory when the clock
// started. R-TIM-005: caches were not cold after they were reset. R-TIM-007: the dataset was read
// past its witness.
Finding NodeFinding(absl::string_view rule_id, std::string found);
// Whether there is such a finding.
bool IsOfNode(absl::string_view rule_id);
// Whether it is of those that a round may demand against (data_cold_at_start).
bool IsOfMemory(absl::string_view rule_id);

// R-IOB-001: less than the training data came from storage up to the end of epoch 1; `found` has
// the bytes. An error where the round demands a first pass from storage and nothing that it allows
// explains what is missing, else a warning.
Finding ShortFirstPass(std::string found, bool is_violation);

// R-IOB-002: so many bytes came from a cache of the nodes in a round that times staging.
Finding DeclaredCache(int64_t bytes);

// R-IOB-003, a warning: in a round that times staging the dataset lay on storage of several
// machines' own, so it had been brought there before; `found` says on which.
Finding CopiedBefore(std::string found);

// R-TIM-008: the first touch of a node was witnessed less well than the round demands; `found` says
// which and how.
Finding WeakFirstTouch(std::string found);

// R-PAR-001, R-NET-001: what a rank ended of, its parameters or an intruder; none for other codes
// (common/exit_code.h). `found` is what it said.
std::optional<Finding> RankFailure(int exit_code, std::string found);

// R-TIM-003, a warning: no node witnessed the first touch, so run_start is only what the log says.
Finding NoWitness();

}  // namespace assay::rules

#endif  // COMMON_RULES_CHECK_H_
