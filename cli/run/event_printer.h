// Events of a run as lines: its log alone, or with stamps and what its node witnessed.

#ifndef CLI_RUN_EVENT_PRINTER_H_
#define CLI_RUN_EVENT_PRINTER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "assay/v1/resources.pb.h"

#include "cli/command/context.h"

namespace assay::cli {

enum class EventDetail {
  kLog,         // the lines of the result file
  kStamps,      // with stamps, and what the node witnessed
  kEverything,  // progress too
};

// Not thread-safe. `context` must outlive it.
class EventPrinter {
 public:
  EventPrinter(const Context* context, EventDetail detail)
      : context_(context),
        has_stamps_(detail != EventDetail::kLog),
        has_progress_(detail == EventDetail::kEverything) {}

  void Print(const v1::RunEvent& event);

  // The node's, or that of the record itself where nobody watched the run; 0: there is none.
  int64_t StampOf(const v1::RunEvent& event);

  // Whether stamps so far are the log's own.
  bool has_logs_stamps() const { return has_logs_stamps_; }

 private:
  void PrintStamped(const v1::RunEvent& event);
  std::string Describe(const v1::RunEvent& event);
  std::string DescribeLate(const v1::RunEvent& event) const;
  std::string DescribeProgress(const std::string& text) const;
  std::string DescribeLogLine(const v1::RunEvent& event);
  std::string TouchVerdict() const;

  const Context* const context_;
  bool has_logs_stamps_ = false;
  const bool has_stamps_;
  const bool has_progress_;
  std::optional<int64_t> start_us_;
  std::optional<int64_t> touch_us_;
  bool is_attributed_ = false;  // by a process of the run
  std::optional<int64_t> run_start_us_;
};

}  // namespace assay::cli

#endif  // CLI_RUN_EVENT_PRINTER_H_
