#include "server/notify/cursor.h"

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/json_document.h"
#include "common/status.h"

namespace assay::notify {
namespace {

using Json = nlohmann::json;

// nullopt if `json` is not what WriteCursor has written.
std::optional<Cursor> CursorOf(const Json& json) {
  if (!json.is_object() || !json.contains("seq") || !json.contains("away")) return std::nullopt;
  const Json& seq = json["seq"];
  const Json& away = json["away"];
  if (!seq.is_number_integer() || !away.is_object()) return std::nullopt;
  Cursor cursor{.seq = seq.get<int64_t>()};
  for (const auto& [node, kind] : away.items()) {
    if (!kind.is_string()) return std::nullopt;
    cursor.away.emplace(node, kind.get<std::string>());
  }
  return cursor;
}

}  // namespace

absl::StatusOr<std::optional<Cursor>> ReadCursor(const std::string& path) {
  if (!FileExists(path)) return std::nullopt;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  std::optional<Cursor> cursor = CursorOf(ParseJsonDocument<Json>(text));
  if (!cursor.has_value())
    return absl::DataLossError(absl::StrCat(
        path,
        ": is not what the coordinator has written: remove it, and the hook is told what "
        "happens from then on"));
  return cursor;
}

absl::Status WriteCursor(const std::string& path, const Cursor& cursor) {
  const Json json = {{"seq", cursor.seq}, {"away", cursor.away}};
  return WriteFileAtomic(path, json.dump() + "\n", kPrivateFile);
}

}  // namespace assay::notify
