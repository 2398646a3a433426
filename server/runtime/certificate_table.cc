#include "server/runtime/certificate_table.h"

#include <utility>

namespace assay::runtime {

int64_t CertificateTable::ValidFrom(absl::string_view worker) const {
  MutexLock lock(&mutex_);
  const auto it = valid_from_.find(worker);
  return it == valid_from_.end() ? 0 : it->second;
}

void CertificateTable::Replace(const std::map<std::string, core::Worker>& workers) {
  absl::flat_hash_map<std::string, int64_t> valid_from;
  for (const auto& [name, worker] : workers) {
    if (worker.certificate_generation > 0) valid_from[name] = worker.certificate_generation;
  }
  MutexLock lock(&mutex_);
  valid_from_ = std::move(valid_from);
}

}  // namespace assay::runtime
