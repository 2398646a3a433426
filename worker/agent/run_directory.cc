#include "worker/agent/run_directory.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"

#include "common/file.h"
#include "common/json_document.h"
#include "common/status.h"

namespace assay::agent {
namespace {

using Json = nlohmann::json;

constexpr size_t kRunIdBytesMax = 100;
constexpr char kAttributed[] = "attributed";
constexpr char kObserved[] = "observed";
constexpr char kProven[] = "proven";
constexpr char kGate[] = "gate";
constexpr char kErrorUs[] = "error_us";
constexpr char kReadBefore[] = "read_before";

bool IsRunId(absl::string_view id) {
  return !id.empty() && id.size() <= kRunIdBytesMax &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-';
         });
}

absl::StatusOr<Json> ReadJson(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kSmallFileBytesMax, Links::kRefuse));
  Json json = ParseJsonDocument<Json>(text);
  if (!json.is_object()) return absl::DataLossError(absl::StrCat(path, " is not a JSON object"));
  return json;
}

absl::Status WriteJson(const std::string& path, const Json& json) {
  return WriteFileAtomic(path, json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

int64_t Integer(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_number_integer() ? it->get<int64_t>() : 0;
}

std::string Text(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
}

// None before it was possible.
bool IsProven(const Touch& touch) {
  return touch.is_attributed && touch.gate.has_value() && touch.holes.empty();
}

Json ToJson(const RunReads& reads) {
  Json json{{"mapped_bytes", reads.mapped}};
  const auto add = [&json](const char* name, std::optional<int64_t> bytes) {
    if (bytes.has_value()) json[name] = *bytes;
  };
  add("run_storage_bytes", reads.storage);
  add("run_asked_bytes", reads.asked);
  add("server_bytes", reads.servers);
  return json;
}

std::optional<RunReads> RunReadsOf(const Json& json) {
  const auto found = json.find(kReadBefore);
  if (found == json.end() || !found->is_object()) return std::nullopt;
  const auto bytes = [&](const char* name) {
    return found->contains(name) ? std::optional(Integer(*found, name)) : std::nullopt;
  };
  return RunReads{.storage = bytes("run_storage_bytes"),
                  .asked = bytes("run_asked_bytes"),
                  .mapped = Integer(*found, "mapped_bytes"),
                  .servers = bytes("server_bytes")};
}

// "strength" says who it was, "assurance" how well that was seen.
Json ToJson(const Touch& touch) {
  Json holes = Json::array();
  for (const WitnessHole& hole : touch.holes)
    holes.push_back(Json{{"code", hole.code}, {"why", hole.why}});
  Json json{{"path", touch.path},
            {"mechanism", touch.mechanism},
            {"watched", touch.watched},
            {"access", touch.access},
            {"strength", touch.is_attributed ? kAttributed : kObserved},
            {"assurance", IsProven(touch) ? kProven : kObserved},
            {"holes", std::move(holes)},
            {"pid", touch.pid},
            {"process", touch.process},
            {"wall_us", touch.stamp.wall_us},
            {"mono_ns", touch.stamp.mono_ns}};
  if (touch.rank.has_value()) json["rank"] = *touch.rank;
  if (touch.run_reads.has_value()) json[kReadBefore] = ToJson(*touch.run_reads);
  if (touch.error_us.has_value()) json[kErrorUs] = *touch.error_us;
  if (touch.gate.has_value()) json[kGate] = ParseJsonDocument<Json>(GateRecordJson(*touch.gate));
  return json;
}

std::vector<WitnessHole> HolesOf(const Json& json) {
  std::vector<WitnessHole> holes;
  const auto list = json.find("holes");
  if (list == json.end() || !list->is_array()) return holes;
  for (const Json& entry : *list)
    if (entry.is_object()) holes.push_back({Text(entry, "code"), Text(entry, "why")});
  return holes;
}

}  // namespace

Stamp StampNow(const Clock& clock) {
  return Stamp{absl::ToUnixMicros(clock.Wall()), clock.Mono().ns};
}

std::string TouchJson(const Touch& touch) {
  return ToJson(touch).dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<RunDirectory> RunDirectory::ForRun(absl::string_view data_directory,
                                                  const RunKey& key) {
  absl::string_view id = key.run;
  if (!absl::ConsumePrefix(&id, "runs/") || !IsRunId(id) || key.generation <= 0) {
    return absl::InvalidArgumentError(absl::StrCat("not a run that can be executed: name \"",
                                                   key.run, "\", generation ", key.generation));
  }
  return RunDirectory(
      JoinPath(JoinPath(data_directory, "runs"), absl::StrCat(id, "-g", key.generation)));
}

std::optional<RunKey> RunDirectory::ParseName(absl::string_view name) {
  const size_t mark = name.rfind("-g");
  RunKey key;
  if (mark == absl::string_view::npos || !IsRunId(name.substr(0, mark))) return std::nullopt;
  if (!absl::SimpleAtoi(name.substr(mark + 2), &key.generation) || key.generation <= 0)
    return std::nullopt;
  key.run = absl::StrCat("runs/", name.substr(0, mark));
  return key;
}

std::string RunDirectory::Path(absl::string_view file) const {
  return JoinPath(path_, file);
}

std::string RunDirectory::ResultPath(int run_number) const {
  return Path(absl::StrCat("result_", run_number, ".txt"));
}

std::string RunDirectory::StagePath(absl::string_view stage_directory) const {
  return JoinPath(stage_directory, std::filesystem::path(path_).filename().string());
}

absl::StatusOr<StepExit> RunDirectory::ReadExit() const {
  ASSIGN_OR_RETURN(const Json json, ReadJson(ExitPath()));
  return StepExit{static_cast<int>(Integer(json, "exit_code")), Text(json, "reason")};
}

absl::Status RunDirectory::WriteExit(const StepExit& exit, const Stamp& stamp) const {
  RETURN_IF_ERROR(
      MakeDirectories(WitnessDirectory(), kPrivateDirectory));  // an earlier version's run
  return WriteJson(ExitPath(), Json{{"exit_code", exit.code},
                                    {"reason", exit.reason},
                                    {"wall_us", stamp.wall_us},
                                    {"mono_ns", stamp.mono_ns}});
}

absl::StatusOr<Touch> RunDirectory::ReadTouch(const std::string& path) const {
  ASSIGN_OR_RETURN(const Json json, ReadJson(path));
  Touch touch{.path = Text(json, "path"),
              .mechanism = Text(json, "mechanism"),
              .access = Text(json, "access"),
              .is_attributed = Text(json, "strength") == kAttributed,
              .pid = static_cast<pid_t>(Integer(json, "pid")),
              .process = Text(json, "process"),
              .stamp = {Integer(json, "wall_us"), Integer(json, "mono_ns")},
              .watched = Text(json, "watched"),
              .holes = HolesOf(json)};
  if (json.contains("rank")) touch.rank = static_cast<int>(Integer(json, "rank"));
  touch.run_reads = RunReadsOf(json);
  if (json.contains(kErrorUs)) touch.error_us = Integer(json, kErrorUs);
  if (json.contains(kGate)) {
    ASSIGN_OR_RETURN(touch.gate, ParseGateRecord(json[kGate].dump()));
  }
  return touch;
}

absl::Status RunDirectory::WriteTouch(const Touch& touch) const {
  return WriteJson(touch.is_attributed ? TouchPath() : ObservedTouchPath(), ToJson(touch));
}

absl::StatusOr<std::vector<Pause>> RunDirectory::ReadPauses() const {
  ASSIGN_OR_RETURN(const Json json, ReadJson(PausesPath()));
  const auto list = json.find("pauses");
  if (list == json.end() || !list->is_array())
    return absl::DataLossError(absl::StrCat(PausesPath(), " lists no pauses"));
  std::vector<Pause> pauses;
  for (const Json& entry : *list) {
    Pause pause{.rank = static_cast<int>(Integer(entry, "rank")),
                .begin = {Integer(entry, "begin_wall_us"), Integer(entry, "begin_mono_ns")}};
    if (entry.contains("end_mono_ns"))
      pause.end = Stamp{Integer(entry, "end_wall_us"), Integer(entry, "end_mono_ns")};
    pauses.push_back(pause);
  }
  return pauses;
}

absl::Status RunDirectory::WritePauses(const std::vector<Pause>& pauses) const {
  Json list = Json::array();
  for (const Pause& pause : pauses) {
    Json entry{{"rank", pause.rank},
               {"begin_wall_us", pause.begin.wall_us},
               {"begin_mono_ns", pause.begin.mono_ns}};
    if (pause.end.has_value()) {
      entry["end_wall_us"] = pause.end->wall_us;
      entry["end_mono_ns"] = pause.end->mono_ns;
    }
    list.push_back(std::move(entry));
  }
  return WriteJson(PausesPath(), Json{{"pauses", std::move(list)}});
}

absl::StatusOr<std::vector<NodeFault>> RunDirectory::ReadFaults(const std::string& path) const {
  ASSIGN_OR_RETURN(const Json json, ReadJson(path));
  const auto list = json.find("faults");
  if (list == json.end() || !list->is_array())
    return absl::DataLossError(absl::StrCat(path, " lists no faults"));
  std::vector<NodeFault> faults;
  for (const Json& entry : *list)
    faults.push_back({Text(entry, "rule"), Text(entry, "found")});
  return faults;
}

absl::Status RunDirectory::WriteFaults(const std::string& path,
                                       const std::vector<NodeFault>& faults) const {
  Json list = Json::array();
  for (const NodeFault& fault : faults)
    list.push_back({{"rule", fault.rule}, {"found", fault.found}});
  return WriteJson(path, Json{{"faults", std::move(list)}});
}

absl::StatusOr<ProcessRecord> RunDirectory::ReadProcesses(const std::string& path) const {
  ASSIGN_OR_RETURN(const Json json, ReadJson(path));
  ProcessRecord record{Text(json, "boot_id"), {}};
  const auto list = json.find("processes");
  if (list == json.end() || !list->is_array())
    return absl::DataLossError(absl::StrCat(path, " lists no processes"));
  for (const Json& entry : *list) {
    record.processes.push_back(
        ProcessId{static_cast<pid_t>(Integer(entry, "pid")), Integer(entry, "start_ticks")});
  }
  return record;
}

absl::Status RunDirectory::WriteProcesses(const std::string& path,
                                          const std::vector<ProcessId>& processes) const {
  Json list = Json::array();
  for (const ProcessId& process : processes)
    list.push_back(Json{{"pid", process.pid}, {"start_ticks", process.start_ticks}});
  return WriteJson(path, Json{{"boot_id", BootId()}, {"processes", std::move(list)}});
}

}  // namespace assay::agent
