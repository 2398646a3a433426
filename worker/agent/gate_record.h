// What a gate (reader_gate.h) says of the first reader of a run that it held, and what follows.

#ifndef WORKER_AGENT_GATE_RECORD_H_
#define WORKER_AGENT_GATE_RECORD_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "worker/agent/stamp.h"

namespace assay::agent {

struct GateRecord {
  // The reader that was held.
  std::string path;
  std::string held_by;  // "pre-access events" | "permission events" of fanotify
  std::string access;   // open | read
  pid_t pid = 0;
  std::string process;
  Stamp stamp;  // before anything was handed to it

  int64_t held_us = 0;       // for so long it was, until all below was known
  bool are_copies = false;   // that the run has staged: of these devices are not looked at
  int64_t others_count = 0;  // how often others had been let in by then

  // Pages of the dataset's files in memory.
  int64_t file_count = 0;
  int64_t checked_files = 0;
  int64_t checked_bytes = 0;
  std::string why_unchecked;   // of those that were not; empty: there was no time
  int64_t armed_pages = 0;     // of the checked, when the gate was closed
  int64_t resident_pages = 0;  // and when the reader came

  // What devices had read since the gate was closed: of the dataset's own blocks, where each
  // request can be told, else of whatever lies on its devices; -1: not known.
  bool is_exact = false;
  std::string why_inexact;
  int64_t device_bytes = 0;
  int64_t dataset_bytes = 0;

  bool operator==(const GateRecord&) const = default;
};

std::string GateRecordJson(const GateRecord& record);
// DATA_LOSS for what is none.
absl::StatusOr<GateRecord> ParseGateRecord(absl::string_view json);

// What has been read past the gate, as a sentence; empty if nothing, as far as is known. It says
// nothing of by whom. A thousandth of the dataset is allowed for: the kernel works with pages, too.
// Of copies it says nothing: R-TIM-004 does (stage_check.h).
std::string ReadPastGate(const GateRecord& record);

// Of the checked, since the gate was closed.
int64_t PagesThatCame(const GateRecord& record);

}  // namespace assay::agent

#endif  // WORKER_AGENT_GATE_RECORD_H_
