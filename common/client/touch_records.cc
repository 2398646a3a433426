#include "common/client/touch_records.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/client/artifacts.h"
#include "common/client/run_clocks.h"
#include "common/json_document.h"
#include "common/node_clock.h"
#include "common/program_contract.h"
#include "common/status.h"

namespace assay::client {
namespace {

constexpr char kSelfReported[] = "self-reported";

std::string Text(const Json& record, const char* name) {
  const auto found = record.find(name);
  return found != record.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t Integer(const Json& record, const char* name) {
  const auto found = record.find(name);
  return found != record.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

Json HolesOf(const Json& record) {
  const auto found = record.find("holes");
  return found != record.end() && found->is_array() ? *found : Json::array();
}

// "rank 3 (python, pid 4711)", "somebody (sh, pid 712)".
std::string Toucher(const Json& record) {
  std::string who = Text(record, "strength") == "attributed" ? "the run" : "somebody";
  if (record.contains("rank")) who = absl::StrCat("rank ", Integer(record, "rank"));
  if (Integer(record, "pid") == 0) return who;
  return absl::StrCat(who, " (", Text(record, "process"), ", pid ", Integer(record, "pid"), ")");
}

Json CodesOf(const Json& record) {
  Json codes = Json::array();
  for (const Json& hole : HolesOf(record))
    if (hole.is_object()) codes.push_back(Text(hole, "code"));
  return codes;
}

// ", held for 212 us by pre-access events".
std::string HeldBy(const Json& record) {
  const auto gate = record.find("gate");
  if (gate == record.end() || !gate->is_object()) return "";
  return absl::StrCat(", held for ", Integer(*gate, "held_us"), " us by ", Text(*gate, "held_by"));
}

std::string HolesIn(const Json& record) {
  if (!record.contains("holes")) return "not recorded";
  const std::vector<std::string> codes = CodesOf(record);
  return codes.empty() ? "none" : absl::StrJoin(codes, " ");
}

// By the clock that stamps the log; adds members log_clock_us and log_clock_error_us, null where
// nobody measured how the node's clock stood to it.
void AddLogClock(const rules::RunClocks& clocks, int node, Json* record) {
  constexpr int64_t kNsPerUs = 1000;
  (*record)["log_clock_us"] = nullptr;
  (*record)["log_clock_error_us"] = nullptr;
  if (node == 0) {
    (*record)["log_clock_us"] = Integer(*record, "wall_us");
    (*record)["log_clock_error_us"] = 0;
    return;
  }
  const std::optional<NodeClock> clock = clocks.Of(node);
  const std::optional<CarriedTime> at =
      clock.has_value() ? clock->ByLog(Integer(*record, "mono_ns")) : std::nullopt;
  if (!at.has_value()) return;
  (*record)["log_clock_us"] = at->at_ns / kNsPerUs;
  (*record)["log_clock_error_us"] = at->error_ns / kNsPerUs + 1;
}

// The clocks, and how late the node may have looked, which agents of before do not say: "0.81 ms",
// "0.81 ms and how late it was read", "unknown".
std::string OffBy(const Json& record) {
  if (record["log_clock_error_us"].is_null()) return "unknown";
  const int64_t error_us = Integer(record, "log_clock_error_us") + Integer(record, "error_us");
  return absl::StrFormat("%.3g ms%s", static_cast<double>(error_us) * 1e-3,
                         record.contains("error_us") ? "" : " and how late it was read");
}

std::string TimeOf(const Json& record, int node, absl::TimeZone zone) {
  const bool is_known = !record["log_clock_us"].is_null();
  const int64_t at_us = Integer(record, is_known ? "log_clock_us" : "wall_us");
  const std::string time = absl::FormatTime("%H:%M:%E6S", absl::FromUnixMicros(at_us), zone);
  if (node == 0 && !record.contains("error_us")) return time;
  return absl::StrCat(time, is_known ? " +- " : " by a clock off by an ", OffBy(record),
                      is_known ? "" : " time");
}

std::string SentenceOf(const Json& record, int node, absl::TimeZone zone) {
  const std::string watched = Text(record, "watched");
  return absl::StrCat("first touch ", TimeOf(record, node, zone), " by ", Toucher(record), ", ",
                      Text(record, "mechanism"), watched.empty() ? "" : " of the ", watched,
                      HeldBy(record), ": ", Text(record, "assurance"),
                      "; holes: ", HolesIn(record));
}

// The node in the name of a file of touches.
bool ParseName(absl::string_view name, int* node) {
  return (absl::ConsumePrefix(&name, kTouchPrefix) ||
          absl::ConsumePrefix(&name, kObservedPrefix)) &&
         absl::ConsumeSuffix(&name, ".json") && absl::SimpleAtoi(name, node);
}

int RankOf(const Json& record) {
  const std::string assurance = Text(record, "assurance");
  return assurance == kSelfReported ? 0 : assurance == "proven" ? 2 : 1;
}

}  // namespace

absl::StatusOr<Json> TouchesOf(const Client& client, const v1::Run& run, absl::TimeZone zone) {
  std::multimap<int, Json> by_node;
  const rules::RunClocks clocks = ClocksOf(client, run);
  for (const v1::ArtifactRef& file : run.artifacts()) {
    int node = 0;
    if (!ParseName(file.file_name(), &node)) continue;
    ASSIGN_OR_RETURN(const std::string text, DownloadArtifact(client, file));
    Json record = ParseJsonDocument<Json>(text);
    if (!record.is_object()) continue;
    if (!record.contains("assurance")) record["assurance"] = "observed";  // an agent of before
    record["node"] = node;
    AddLogClock(clocks, node, &record);
    record["off_by"] = OffBy(record);
    record["sentence"] = SentenceOf(record, node, zone);
    record["by"] = Toucher(record);
    record["codes"] = CodesOf(record);
    by_node.emplace(node, std::move(record));
  }
  Json touches = Json::array();
  if (by_node.empty()) return touches;
  for (int node = 0; node < run.workers_size(); ++node)
    if (!by_node.contains(node))
      by_node.emplace(node, Json{{"node", node},
                                 {"assurance", kSelfReported},
                                 {"sentence", "no first touch was witnessed: self-reported"}});
  for (auto& [node, record] : by_node)
    touches.push_back(std::move(record));
  return touches;
}

Json TouchHolesOf(const Json& touches) {
  Json rows = Json::array();
  for (const Json& record : touches)
    for (const Json& hole : HolesOf(record))
      if (hole.is_object())
        rows.push_back(
            {{"node", record["node"]}, {"code", Text(hole, "code")}, {"why", Text(hole, "why")}});
  return rows;
}

const Json& WeakestTouch(const Json& touches) {
  return *std::min_element(touches.begin(), touches.end(),
                           [](const Json& a, const Json& b) { return RankOf(a) < RankOf(b); });
}

}  // namespace assay::client
