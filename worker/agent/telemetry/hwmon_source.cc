// Sensors of power and energy of the node's chips (/sys/class/hwmon). The board's own power meter
// (acpi_power_meter, by IPMI) is of the whole node; what others count may be in each other, so it
// stands apart and is added to nothing.

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "common/file.h"
#include "worker/agent/telemetry/number_source.h"
#include "worker/agent/telemetry/source.h"

namespace assay::agent {
namespace {

constexpr absl::string_view kPowerMeter = "power_meter";
constexpr size_t kSensorsMax = 32;  // each costs a read a second

class HwmonSource final : public NumberSource {
 public:
  explicit HwmonSource(const SourceOptions& options) {
    const std::string root = options.sys + "/class/hwmon";
    for (const std::string& chip : ListDirectory(root).value_or(std::vector<std::string>())) {
      const std::string folder = absl::StrCat(root, "/", chip);
      const std::string name(absl::StripAsciiWhitespace(ReadFile(folder + "/name").value_or("")));
      // Of two chips of one kind the second has its number.
      const std::string unique = names_.insert(name).second ? name : absl::StrCat(name, "-", chip);
      if (name == kPowerMeter) {
        AddPowerMeter(unique, folder);
      } else {
        AddSensors(unique, folder);
      }
    }
  }

  bool is_meter() const override { return true; }

 private:
  void AddPowerMeter(const std::string& name, const std::string& folder) {
    const bool has_average = FileExists(folder + "/power1_average");
    Add({absl::StrCat("power.node.", name), "uW", false},
        absl::StrCat(folder, has_average ? "/power1_average" : "/power1_input"));
  }

  // power1_input, energy2_input.
  void AddSensors(const std::string& name, const std::string& folder) {
    for (const std::string& file : ListDirectory(folder).value_or(std::vector<std::string>())) {
      absl::string_view sensor = file;
      const bool is_energy = absl::StartsWith(sensor, "energy");
      if (!absl::ConsumeSuffix(&sensor, "_input") ||
          (!is_energy && !absl::StartsWith(sensor, "power")))
        continue;
      if (columns().size() >= kSensorsMax) return;
      Add({absl::StrCat("hwmon.", name, ".", sensor), is_energy ? "uJ" : "uW", is_energy},
          absl::StrCat(folder, "/", file));
    }
  }

  std::set<std::string> names_;
};

}  // namespace

std::unique_ptr<TelemetrySource> MakeHwmonSource(const SourceOptions& options) {
  return std::make_unique<HwmonSource>(options);
}

}  // namespace assay::agent
