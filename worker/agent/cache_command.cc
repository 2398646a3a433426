#include "worker/agent/cache_command.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

#include "assay/v1/config.pb.h"

#include "common/json_value.h"
#include "common/status.h"
#include "worker/agent/account.h"
#include "worker/agent/config.h"
#include "worker/agent/stage_area.h"
#include "worker/cache/cache_link.h"
#include "worker/cache/node_cache.h"

namespace assay::agent {
namespace {

constexpr int kExitUsage = 2;
constexpr double kGB = 1e9;

constexpr char kUsage[] =
    R"(Usage: assay-worker cache stage DIR --config=FILE      copy the dataset in DIR to this node's cache
       assay-worker cache list --config=FILE [--json]  what is there, the longest unused first
       assay-worker cache verify DATASET --config=FILE read it and drop what is damaged
       assay-worker cache pin DATASET --config=FILE    never evict it; unpin lets it go again
       assay-worker cache unpin DATASET --config=FILE
       assay-worker cache evict DATASET --config=FILE  remove it

FILE is the agent's configuration, whose node_cache names the directory and its quota. Use the agent's
account. DATASET is a name, or the beginning of a digest. stage goes on where it was stopped, and makes
room by evicting what was not used for longest, but nothing that is pinned or that a run holds. Exit
codes: 0 done, 1 not possible, 2 wrong arguments.
)";

struct CacheArguments {
  std::string verb;
  std::string operand;
  std::string config_path;
  bool is_json = false;
};

absl::StatusOr<CacheArguments> Parse(const std::vector<std::string>& arguments) {
  CacheArguments parsed;
  for (const std::string& argument : arguments) {
    absl::string_view value = argument;
    if (absl::ConsumePrefix(&value, "--config=")) {
      parsed.config_path = std::string(value);
    } else if (value == "--json") {
      parsed.is_json = true;
    } else if (parsed.verb.empty()) {
      parsed.verb = argument;
    } else if (parsed.operand.empty() && !value.empty() && value.front() != '-') {
      parsed.operand = argument;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("unknown argument ", argument));
    }
  }
  const bool is_list = parsed.verb == "list";
  if (!is_list && parsed.verb != "stage" && parsed.verb != "pin" && parsed.verb != "unpin" &&
      parsed.verb != "evict" && parsed.verb != "verify")
    return absl::InvalidArgumentError(absl::StrCat("unknown command \"", parsed.verb, "\""));
  if (is_list != parsed.operand.empty())
    return absl::InvalidArgumentError(is_list ? "list takes no dataset"
                                              : absl::StrCat(parsed.verb, " what?"));
  if (parsed.config_path.empty()) return absl::InvalidArgumentError("--config is missing");
  return parsed;
}

absl::Status Stage(cache::NodeCache* cache, const std::string& source, const Clock& clock,
                   std::ostream* output) {
  ASSIGN_OR_RETURN(const cache::Filled filled, cache->Stage(source, &clock));
  for (const std::string& name : filled.evicted)
    *output << "evicted " << name << "\n";
  const double seconds = absl::ToDoubleSeconds(filled.staged.elapsed);
  *output << absl::StrFormat("%s: %d files (%.3f GB) copied in %.1f s, %d (%.3f GB) were there\n",
                             filled.digest.substr(0, 12), filled.staged.files,
                             static_cast<double>(filled.staged.bytes) / kGB, seconds,
                             filled.files_there, static_cast<double>(filled.bytes_there) / kGB);
  return absl::OkStatus();
}

JsonValue JsonOf(const cache::CachedDataset& dataset) {
  return JsonValue(JsonObject{{"digest", JsonValue(dataset.digest)},
                              {"name", JsonValue(dataset.name)},
                              {"files", JsonValue(dataset.files)},
                              {"files_total", JsonValue(dataset.files_total)},
                              {"bytes", JsonValue(dataset.bytes)},
                              {"bytes_total", JsonValue(dataset.bytes_total)},
                              {"last_use_unix_ms", JsonValue(absl::ToUnixMillis(dataset.used))},
                              {"is_pinned", JsonValue(dataset.is_pinned)},
                              {"is_in_use", JsonValue(dataset.is_held)}});
}

absl::Status List(cache::NodeCache* cache, bool is_json, std::ostream* output) {
  ASSIGN_OR_RETURN(const std::vector<cache::CachedDataset> datasets, cache->List());
  JsonList list;
  if (!is_json)
    *output << absl::StrFormat("%-12s  %9s  %9s  %-20s  %s\n", "DIGEST", "GB", "OF GB",
                               "LAST USE (UTC)", "DATASET");
  for (const cache::CachedDataset& dataset : datasets) {
    list.push_back(JsonOf(dataset));
    if (is_json) continue;
    *output << absl::StrFormat(
        "%-12s  %9.3f  %9.3f  %-20s  %s%s%s\n", dataset.digest.substr(0, 12),
        static_cast<double>(dataset.bytes) / kGB, static_cast<double>(dataset.bytes_total) / kGB,
        absl::FormatTime("%Y-%m-%d %H:%M:%S", dataset.used, absl::UTCTimeZone()), dataset.name,
        dataset.is_pinned ? " (pinned)" : "", dataset.is_held ? " (in use)" : "");
  }
  if (is_json) *output << DumpJson(JsonValue(std::move(list))) << "\n";
  return absl::OkStatus();
}

absl::Status Verify(cache::NodeCache* cache, const std::string& digest, std::ostream* output) {
  ASSIGN_OR_RETURN(const cache::Lease lease, cache->Hold(digest));
  ASSIGN_OR_RETURN(const cache::Verified verified,
                   cache::VerifyCached(lease, [] { return false; }));
  for (const std::string& name : verified.damaged)
    *output << "damaged, and dropped: " << name << "\n";
  *output << absl::StrFormat("%s: %d files (%.3f GB) read, %d damaged, %d changed since\n",
                             digest.substr(0, 12), verified.files,
                             static_cast<double>(verified.bytes) / kGB, verified.damaged.size(),
                             verified.changed_files);
  if (verified.damaged.empty() && verified.changed_files == 0) return absl::OkStatus();
  return absl::DataLossError("not all of it can be used: `cache stage` restores it");
}

absl::Status Do(const CacheArguments& arguments, const Clock& clock, std::ostream* output) {
  ASSIGN_OR_RETURN(const v1::WorkerConfig config, LoadConfig(arguments.config_path));
  ASSIGN_OR_RETURN(const std::optional<Account> user, FindRunUser(config));
  ASSIGN_OR_RETURN(cache::NodeCache cache, OpenNodeCache(config, user));
  if (arguments.verb == "stage") return Stage(&cache, arguments.operand, clock, output);
  if (arguments.verb == "list") return List(&cache, arguments.is_json, output);
  ASSIGN_OR_RETURN(const std::string digest, cache.Find(arguments.operand));
  if (arguments.verb == "verify") return Verify(&cache, digest, output);
  if (arguments.verb == "evict") return cache.Evict(digest);
  return cache.SetPinned(digest, arguments.verb == "pin");
}

}  // namespace

int RunCacheCommand(const std::vector<std::string>& arguments, const Clock& clock,
                    std::ostream* output, std::ostream* error) {
  if (std::find(arguments.begin(), arguments.end(), "--help") != arguments.end()) {
    *output << kUsage;
    return EXIT_SUCCESS;
  }
  const absl::StatusOr<CacheArguments> parsed = Parse(arguments);
  if (!parsed.ok()) {
    *error << "assay-worker cache: " << parsed.status().message() << "\n" << kUsage;
    return kExitUsage;
  }
  const absl::Status status = Do(*parsed, clock, output);
  if (status.ok()) return EXIT_SUCCESS;
  *error << "assay-worker cache: " << status.message() << "\n";
  return EXIT_FAILURE;
}

}  // namespace assay::agent
