#include "common/client/cache_records.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/client/artifacts.h"
#include "common/json_document.h"
#include "common/status.h"

namespace assay::client {

absl::StatusOr<Json> CachesOf(const Client& client, const v1::Run& run) {
  Json caches = Json::array();
  for (const v1::ArtifactRef& file : run.artifacts()) {
    absl::string_view name = file.file_name();
    int node = 0;
    if (!absl::ConsumePrefix(&name, "caches_") || !absl::ConsumeSuffix(&name, ".json") ||
        !absl::SimpleAtoi(name, &node))
      continue;
    ASSIGN_OR_RETURN(const std::string text, DownloadArtifact(client, file));
    Json record = ParseJsonDocument<Json>(text);
    if (!record.is_object()) continue;
    record["node"] = node;
    caches.push_back(std::move(record));
  }
  std::sort(caches.begin(), caches.end(),
            [](const Json& a, const Json& b) { return a["node"] < b["node"]; });
  return caches;
}

}  // namespace assay::client
