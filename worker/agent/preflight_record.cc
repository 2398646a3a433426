#include "worker/agent/preflight_record.h"

#include <utility>

#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"
#include "nlohmann/json.hpp"

namespace assay::agent {
namespace {

using Json = nlohmann::ordered_json;

std::string TimeText(const google::protobuf::Timestamp& time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ",
                          absl::FromUnixSeconds(time.seconds()) + absl::Nanoseconds(time.nanos()),
                          absl::UTCTimeZone());
}

Json CheckJson(const v1::NodeCheck& check) {
  Json json{{"check", check.check()},
            {"policy", v1::NodeCheck::Policy_Name(check.policy())},
            {"is_measured", check.is_measured()}};
  if (check.is_measured()) {
    json["value"] = check.value();
    json["unit"] = check.unit();
  }
  if (check.has_median()) json["median"] = check.median();
  json["detail"] = check.detail();
  json["problem"] = check.problem();
  return json;
}

}  // namespace

std::string PreflightRecord(absl::string_view node, const v1::Preflight& preflight) {
  Json checks = Json::array();
  for (const v1::NodeCheck& check : preflight.checks())
    checks.push_back(CheckJson(check));
  const Json json{{"node", std::string(node)},
                  {"submission", preflight.submission()},
                  {"state", v1::Preflight::State_Name(preflight.state())},
                  {"reason", preflight.reason()},
                  {"start_time", TimeText(preflight.start_time())},
                  {"end_time", TimeText(preflight.end_time())},
                  {"percent_of_median", preflight.percent_of_median()},
                  {"checks", std::move(checks)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace assay::agent
