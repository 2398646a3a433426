// What servers of network file systems have sent to this node and got from it: of NFS
// (/proc/self/mountstats), of Lustre by its object storage clients. What its caches answered is not
// in there.

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "common/file.h"
#include "worker/agent/telemetry/kernel_file.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

struct Moved {
  int64_t read = 0;
  int64_t written = 0;
};

// "device srv:/data mounted on /data with fstype nfs4 statvers=1.1", and below it
// "bytes: 1 2 3 4 5 6 7 8", of which the fifth and sixth went over the network. Of a file system
// that is mounted twice both mounts have the same counts. nullopt: none is NFS.
std::optional<Moved> NfsBytes(absl::string_view mountstats) {
  std::optional<Moved> sum;
  std::set<std::string> counted;
  bool is_wanted = false;
  for (const absl::string_view line : absl::StrSplit(mountstats, '\n')) {
    const std::vector<absl::string_view> words = WordsOf(line);
    if (words.size() >= 8 && words[0] == "device")
      is_wanted = absl::StartsWith(words[7], "nfs") && counted.emplace(words[1]).second;
    if (!is_wanted || words.size() < 7 || words[0] != "bytes:") continue;
    const int64_t read = NumberOf(words[5]);
    const int64_t written = NumberOf(words[6]);
    if (read == telemetry::kMissing || written == telemetry::kMissing) return std::nullopt;
    if (!sum.has_value()) sum.emplace();
    sum->read += read;
    sum->written += written;
  }
  return sum;
}

// "read_bytes 3 samples [bytes] 4096 1048576 2101248": the last is the sum. A client that has moved
// nothing has no such line.
Moved LustreBytes(absl::string_view stats) {
  Moved moved;
  for (const absl::string_view line : absl::StrSplit(stats, '\n')) {
    const std::vector<absl::string_view> words = WordsOf(line);
    if (words.size() < 7) continue;
    const int64_t sum = NumberOf(words[6]);
    if (sum == telemetry::kMissing) continue;
    if (words[0] == "read_bytes") moved.read = sum;
    if (words[0] == "write_bytes") moved.written = sum;
  }
  return moved;
}

class ServerSource final : public TelemetrySource {
 public:
  explicit ServerSource(const SourceOptions& options)
      : mountstats_(options.proc + "/self/mountstats") {
    has_nfs_ = NfsBytes(mountstats_.Read()).has_value();
    for (const std::string& root :
         {options.proc + "/fs/lustre/osc", options.sys + "/kernel/debug/lustre/osc"}) {
      for (const std::string& client : ListDirectory(root).value_or(std::vector<std::string>())) {
        KernelFile stats(absl::StrCat(root, "/", client, "/stats"));
        if (stats.is_open()) lustre_.push_back(std::move(stats));
      }
      if (!lustre_.empty()) break;
    }
    if (has_nfs_) Add("nfs");
    if (!lustre_.empty()) Add("lustre");
  }

  const std::vector<telemetry::Column>& columns() const override { return columns_; }

  void Sample(std::span<int64_t> values) override {
    size_t at = 0;
    if (has_nfs_) {
      if (const std::optional<Moved> moved = NfsBytes(mountstats_.Read()); moved.has_value()) {
        values[at] = moved->read;
        values[at + 1] = moved->written;
      }
      at += 2;
    }
    if (lustre_.empty()) return;
    Moved sum;
    for (KernelFile& stats : lustre_) {
      const Moved moved = LustreBytes(stats.Read());
      sum.read += moved.read;
      sum.written += moved.written;
    }
    values[at] = sum.read;
    values[at + 1] = sum.written;
  }

 private:
  void Add(const char* kind) {
    columns_.push_back({absl::StrCat("server.", kind, ".read"), "bytes", true});
    columns_.push_back({absl::StrCat("server.", kind, ".written"), "bytes", true});
  }

  KernelFile mountstats_;
  bool has_nfs_ = false;
  std::vector<KernelFile> lustre_;
  std::vector<telemetry::Column> columns_;
};

}  // namespace

std::unique_ptr<TelemetrySource> MakeServerSource(const SourceOptions& options) {
  return std::make_unique<ServerSource>(options);
}

}  // namespace assay::agent
