#include "cli/run/run_caches.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace assay::cli {
namespace {

// What a run began with because its node kept it from earlier, as sentences; none: nothing.
std::vector<std::string> NodeCacheNotes(const Json& cached) {
  if (!cached.is_object()) return {};
  const auto count = [&cached](const char* key) { return cached.value(key, int64_t{0}); };
  const int64_t checked = count("checked_files");
  std::vector<std::string> notes = {absl::StrCat(
      count("files"), " files (", FormatBytes(static_cast<double>(count("bytes"))),
      ") came from the node's cache: ",
      checked == count("files") ? std::string("all") : absl::StrCat("a sample of ", checked),
      " verified")};
  for (const Json& name : cached.value("damaged", Json::array()))
    if (name.is_string())
      notes.push_back(absl::StrCat("damaged in the cache: ", name.get_ref<const std::string&>()));
  return notes;
}

// What a reader has to know besides the numbers: a line for each sentence.
Json NotesOf(const Json& caches) {
  Json notes = Json::array();
  for (const Json& record : caches) {
    const auto add = [&notes, &record](const Json& sentence) {
      if (sentence.is_string() && !sentence.get_ref<const std::string&>().empty())
        notes.push_back({{"node", record["node"]}, {"note", sentence}});
    };
    add(record.value("reason", Json()));
    for (const Json& sentence : record.value("not_known", Json::array()))
      add(sentence);
    for (const std::string& sentence : NodeCacheNotes(record.value("node_cache", Json())))
      add(sentence);
  }
  return notes;
}

}  // namespace

void AddCaches(Json caches, ShowView* view) {
  view->value["cache_notes"] = NotesOf(caches);
  view->value["caches"] = std::move(caches);
  view->sections.push_back({"Caches when the run began",
                            "caches",
                            {{"NODE", "node"},
                             {"COLDNESS", "coldness"},
                             {"METHOD", "method"},
                             {"PAGES", "resident_pages"},
                             {"CHECKED", "checked_files"},
                             {"OF FILES", "file_count"},
                             {"BOUND", "bound_bytes", Format::kBytes},
                             {"FILE SYSTEM", "file_system"}}});
  view->sections.push_back(
      {"Notes on caches", "cache_notes", {{"NODE", "node"}, {"NOTE", "note"}}});
}

}  // namespace assay::cli
