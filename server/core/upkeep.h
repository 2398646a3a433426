// What the log of events says of things that are done elsewhere and change no state here: backups
// and the removal of what no verdict needs, which the store carries out, and calls that were
// refused.

#ifndef SERVER_CORE_UPKEEP_H_
#define SERVER_CORE_UPKEEP_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "server/core/types.h"

namespace assay::core {

// One file of a run that is removed, or may be.
struct PrunedArtifact {
  RunId run;
  ArtifactRef artifact;
  bool operator==(const PrunedArtifact&) const = default;
};
inline constexpr size_t kPrunedArtifactCountMax = 1000;  // of a command

// Files of one kind, of one submission.
struct PrunableFiles {
  SubmissionId submission;
  std::string kind;  // PrunableKind
  std::vector<PrunedArtifact> artifacts;
};

// How many days after the end of its submission a file is kept, by the configuration; 0: for ever.
struct RetentionPolicy {
  int32_t telemetry_days = 0;
  int32_t progress_days = 0;
};

// Calls of one kind that were refused for who made them, in some seconds.
struct RefusedCalls {
  std::string principal;  // empty: not known
  std::string peer;       // "ipv4:10.0.0.9", "uid 1000"; without a port
  std::string method;     // "assay.v1.AdminService/ListTokens", or a path
  std::string reason;
  int64_t count = 0;
  int64_t first_us = 0;  // of the first
  bool operator==(const RefusedCalls&) const = default;
};
inline constexpr size_t kRefusedTextBytesMax = 2048;  // of each text

// "telemetry" or "progress", if a policy may remove a run's file of this name when its submission
// has ended; empty: it is evidence, or what made it, and is kept for ever.
absl::string_view PrunableKind(absl::string_view file_name);

// ---------------------------------------------------------------------------------------- commands

// A backup was made. Reply: Done.
struct RecordBackup {
  std::string directory;
  int64_t event_seq = 0;  // the last that is in it
  int64_t artifact_count = 0;
  int64_t fault_count = 0;  // artifacts that were damaged or missing
};

// Files of runs of a submission that has ended are removed, because a policy allows it: from the
// commit on they need not be there. Reply: Done. INVALID_ARGUMENT for a submission that never was,
// no artifact, too many, or one that is evidence; FAILED_PRECONDITION before it has ended.
struct PruneArtifacts {
  SubmissionId submission;
  std::string policy;  // as the configuration has it: "telemetry_days: 365"
  std::vector<PrunedArtifact> artifacts;
};

// Reply: Done. INVALID_ARGUMENT for a text that is too long, or a count below 1.
struct RecordRefusal {
  RefusedCalls calls;
};

// ------------------------------------------------------------------------------------------ events

struct StoreBackedUp {
  static constexpr absl::string_view kType = "StoreBackedUp";
  static constexpr int kVersion = 1;
  std::string directory;
  int64_t event_seq = 0;
  int64_t artifact_count = 0;
  int64_t fault_count = 0;
  bool operator==(const StoreBackedUp&) const = default;
};

// Their bytes may be gone; names, sizes and digests stay with the runs.
struct ArtifactsPruned {
  static constexpr absl::string_view kType = "ArtifactsPruned";
  static constexpr int kVersion = 1;
  SubmissionId submission;
  std::string policy;
  std::vector<PrunedArtifact> artifacts;
  bool operator==(const ArtifactsPruned&) const = default;
};

struct CallsRefused {
  static constexpr absl::string_view kType = "CallsRefused";
  static constexpr int kVersion = 1;
  RefusedCalls calls;
  bool operator==(const CallsRefused&) const = default;
};

}  // namespace assay::core

#endif  // SERVER_CORE_UPKEEP_H_
