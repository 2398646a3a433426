#include "common/client/run_profile.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/client/watch.h"
#include "common/json_document.h"
#include "common/status.h"

namespace assay::client {
namespace {

// Events to look through at first; each further time so many times more.
constexpr int64_t kFirstWindow = 256;
constexpr int64_t kWindowGrowth = 16;

}  // namespace

Json ParseProfile(absl::string_view text) {
  const Json json = ParseJsonDocument<Json>(text);
  if (!json.is_object()) return nullptr;
  const auto profile = json.find("profile");
  if (profile == json.end() || !profile->is_object()) return nullptr;
  return *profile;
}

absl::StatusOr<Json> LatestProfile(const Client& client, Cancellation* cancellation,
                                   const v1::Run& run) {
  for (int64_t window = kFirstWindow;; window *= kWindowGrowth) {
    const RunEventQuery query{.run = run.name(),
                              .after_seq = std::max<int64_t>(run.event_count() - window, 0),
                              .follow = false};
    Json latest;
    RETURN_IF_ERROR(ForEachRunEvent(client, cancellation, query, [&](const v1::RunEvent& event) {
      if (event.kind() != v1::RunEvent::PROGRESS || event.is_late()) return;
      Json profile = ParseProfile(event.text());
      if (!profile.is_null()) latest = std::move(profile);
    }));
    if (!latest.is_null() || query.after_seq == 0) return latest;
  }
}

}  // namespace assay::client
