#include "worker/agent/isolation.h"

#include "common/log.h"

namespace assay::agent {

absl::StatusOr<Isolated> Isolate(const v1::WorkerConfig& worker, const std::optional<Account>& user,
                                 const Sight& sight, const std::string& hold_program,
                                 const std::string& log_path) {
  const Isolated plain{.how = user.has_value() ? Isolation::kAccount : Isolation::kNone};
  const bool is_demanded =
      worker.isolation() == v1::WorkerConfig::NAMESPACES || !sight.image_root.empty();
  const bool is_automatic = worker.isolation() == v1::WorkerConfig::AUTOMATIC;
  if (!is_demanded && !(is_automatic && !user.has_value())) return plain;
  const absl::StatusOr<Sandbox> sandbox = Sandbox::Open(
      {.user = user,
       .root = sight.image_root,
       .software = {worker.software_directories().begin(), worker.software_directories().end()},
       .hidden = {worker.data_directory()},
       .readable = sight.readable,
       .writable = sight.writable,
       .temporary_directory = sight.temporary_directory,
       .hold_program = hold_program,
       .log_path = log_path});
  if (sandbox.ok()) return Isolated{.how = Isolation::kNamespaces, .sandbox = *sandbox};
  if (is_demanded) return sandbox.status();
  LOG(WARNING) << "programs have the agent's account and see what it sees: " << sandbox.status();
  return plain;
}

}  // namespace assay::agent
