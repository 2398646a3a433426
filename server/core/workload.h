// What the runs of a submission execute.

#ifndef SERVER_CORE_WORKLOAD_H_
#define SERVER_CORE_WORKLOAD_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace assay::core {

// The native trainer.
struct TrainerWorkload {
  std::string backend;  // empty: any; then capabilities are not compared
  bool operator==(const TrainerWorkload&) const = default;
};

// A source that a submission brought, as CommandWorkload.source in workload.proto.
struct SourceArchive {
  std::string sha256;
  int64_t size_bytes = 0;
  std::string git_commit;
  bool is_modified = false;
  bool operator==(const SourceArchive&) const = default;
};

// As CommandWorkload.image in workload.proto.
struct ImageFile {
  std::string path;
  std::string sha256;
  bool operator==(const ImageFile&) const = default;
};

// Somebody's own program. What it means is the agent's affair (proto/assay/v1/workload.proto).
struct CommandWorkload {
  std::vector<std::string> command;
  std::string launcher;
  std::optional<SourceArchive> source;
  std::string log;
  std::map<std::string, std::string> env;
  std::vector<std::string> collect;
  int32_t stop_grace_s = 0;
  int64_t memory_mib = 0;
  std::optional<ImageFile> image;
  bool operator==(const CommandWorkload&) const = default;
};

// What runs execute, one alternative for each kind. Only what decides where a run may be placed is
// looked at here.
using Workload = std::variant<TrainerWorkload, CommandWorkload>;

// The backend that workers must have for it; empty: any.
const std::string& BackendOf(const Workload& workload);
// The source that it brings; null if it has none.
const SourceArchive* SourceOf(const Workload& workload);

}  // namespace assay::core

#endif  // SERVER_CORE_WORKLOAD_H_
