#include "server/core/cache_placement.h"

#include <algorithm>
#include <iterator>

namespace assay::core {

std::string DigestToStartFrom(const State& state, const Submission& submission) {
  if (submission.spec.staging != "node" || submission.rules.is_staging_timed) return "";
  const auto it = state.datasets.find(submission.spec.dataset);
  return it == state.datasets.end() ? "" : it->second.digest;
}

bool IsCached(const PresenceMap& presence, const std::string& worker, const std::string& digest) {
  const auto it = presence.find(worker);
  if (it == presence.end() || !it->second.report.cache.has_value()) return false;
  const std::vector<CachedDataset>& datasets = it->second.report.cache->datasets;
  return std::any_of(datasets.begin(), datasets.end(), [&digest](const CachedDataset& dataset) {
    return dataset.digest == digest && dataset.files_total > 0 &&
           dataset.files >= dataset.files_total;
  });
}

std::vector<std::string> CachedAmong(const State& state, const PresenceMap& presence,
                                     const Submission& submission,
                                     const std::vector<std::string>& workers) {
  std::vector<std::string> cached;
  const std::string digest = DigestToStartFrom(state, submission);
  if (digest.empty()) return cached;
  std::copy_if(workers.begin(), workers.end(), std::back_inserter(cached),
               [&](const std::string& name) { return IsCached(presence, name, digest); });
  return cached;
}

}  // namespace assay::core
