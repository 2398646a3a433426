#include "common/package/power.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "common/package/findings.h"
#include "common/package/text.h"

namespace assay::package {
namespace {

// The number at the end of "node_3.txt"; nullopt where there is none (the official checker dies). A
// number too large for any index is -1, which is out of range too.
std::optional<int64_t> IndexOf(absl::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot != absl::string_view::npos) name = name.substr(0, dot);
  const size_t bar = name.rfind('_');
  if (bar != absl::string_view::npos) name = name.substr(bar + 1);
  const std::optional<std::string> digits = PythonInt(name);
  if (!digits.has_value()) return std::nullopt;
  int64_t index = 0;
  return absl::SimpleAtoi(*digits, &index) ? index : -1;
}

// Files of one kind in the folder of one run.
struct Meters {
  int count = 0;
  bool is_numbered = true;  // 0..count-1
  bool has_repeats = false;
  bool is_fatal = false;
};

Meters CountMeters(const PowerFolder& folder, absl::string_view kind) {
  Meters meters;
  std::vector<int64_t> indexes;
  for (const std::string& file : folder.files) {
    if (!absl::StartsWith(file, kind)) continue;
    ++meters.count;
    const std::optional<int64_t> index = IndexOf(file);
    meters.is_fatal = meters.is_fatal || !index.has_value();
    if (index.has_value()) indexes.push_back(*index);
  }
  std::sort(indexes.begin(), indexes.end());
  meters.has_repeats = std::adjacent_find(indexes.begin(), indexes.end()) != indexes.end();
  for (const int64_t index : indexes)
    meters.is_numbered = meters.is_numbered && index >= 0 && index < meters.count;
  return meters;
}

// The count that most runs have; of several the one that comes first. `counts` is not empty.
int MostFrequent(const std::vector<int>& counts) {
  std::map<int, int> times;
  for (const int count : counts)
    ++times[count];
  int best = counts.front();
  for (const int count : counts)
    if (times[count] > times[best]) best = count;
  return best;
}

class PowerCheck {
 public:
  PowerCheck(std::span<const std::string> runs, std::span<const PowerFolder> power) : runs_(runs) {
    for (const PowerFolder& folder : power)
      power_[folder.run] = &folder;
  }

  PowerReport Run() {
    for (const std::string& run : runs_)
      CheckRun(run);
    if (present_.empty()) {
      report_.is_fatal = true;
      Add("R-PWR-004", "no folder of any run");
      return std::move(report_);
    }
    CheckCounts(nodes_, "nodes");
    CheckCounts(switches_, "switches");
    return std::move(report_);
  }

 private:
  void Add(absl::string_view rule, const std::string& found) {
    report_.findings.push_back(Violation(rule, found));
  }

  void CheckRun(const std::string& run) {
    const auto found = power_.find(run);
    if (found == power_.end()) {
      Add("R-PWR-001", absl::StrCat("nothing for ", run));
      report_.failed_runs.insert(run);
      return;
    }
    const PowerFolder& folder = *found->second;
    const Meters nodes = CountMeters(folder, "node");
    const Meters switches = CountMeters(folder, "sw");
    const auto others = static_cast<int>(folder.files.size()) - nodes.count - switches.count;
    if (others > 0 || nodes.has_repeats || switches.has_repeats)
      Add("R-PWR-005", absl::StrCat("other files or repeated numbers in power/", run));
    if (!nodes.is_numbered || !switches.is_numbered) {
      Add("R-PWR-002", absl::StrCat("other numbers in power/", run));
      report_.failed_runs.insert(run);
    }
    if (nodes.is_fatal || switches.is_fatal) {
      Add("R-PWR-004", absl::StrCat("a file without a number in power/", run));
      report_.is_fatal = true;
    }
    present_.push_back(run);
    nodes_.push_back(nodes.count);
    switches_.push_back(switches.count);
  }

  void CheckCounts(const std::vector<int>& counts, absl::string_view kind) {
    const int usual = MostFrequent(counts);
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == usual) continue;
      // The official checker counts the folders that exist and names the runs that were handed in.
      const std::string& blamed = runs_[i];
      report_.failed_runs.insert(blamed);
      Add("R-PWR-003",
          absl::StrCat(counts[i], " ", kind, " in power/", present_[i], ", ", usual, " in most",
                       blamed == present_[i]
                           ? ""
                           : absl::StrCat(" (the official checker blames ", blamed, ")")));
    }
  }

  const std::span<const std::string> runs_;
  std::map<std::string, const PowerFolder*> power_;  // by run
  std::vector<std::string> present_;                 // runs with a folder, in order
  std::vector<int> nodes_, switches_;                // of those
  PowerReport report_;
};

}  // namespace

PowerReport CheckPower(std::span<const std::string> runs, std::span<const PowerFolder> power) {
  return PowerCheck(runs, power).Run();
}

}  // namespace assay::package
