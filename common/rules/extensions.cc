#include "common/rules/extensions.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"

namespace assay::rules {
namespace {

struct Extension {
  absl::string_view key;
  absl::string_view rule_id;
  absl::string_view off;       // the text by which it is off; empty: only leaving it out does
  absl::string_view expected;  // instead
  absl::string_view way_out;   // besides the open division
};

constexpr absl::string_view kSameData = "the reference's preprocessing, which has no augmentation";
constexpr absl::string_view kSameTraining = "the reference's training, which changes all layers";
constexpr absl::string_view kSameDecay = "a schedule of the reference";
constexpr absl::string_view kBoundaries =
    "use opt_learning_rate_decay_boundary_epochs and opt_learning_rate_decay_factor";

constexpr Extension kExtensions[] = {
    {"data_augmentation", "R-EXT-001", "none", kSameData, "leave data_augmentation out"},
    {"gradient_skip_layer", "R-EXT-002", "", kSameTraining, "leave gradient_skip_layer out"},
    {"gradient_skip_after_epochs", "R-EXT-002", "", kSameTraining,
     "leave gradient_skip_after_epochs out"},
    {"opt_learning_rate_decay_epochs", "R-EXT-003", "", kSameDecay, kBoundaries},
    {"opt_learning_rate_decay_end_factor", "R-EXT-003", "", kSameDecay, kBoundaries},
    {"opt_learning_rate_decay_poly_power", "R-EXT-003", "", kSameDecay, kBoundaries},
    {"scheduler_power", "R-EXT-003", "", kSameDecay,
     "use a scheduler_type of multistep or cosine_annealing"},
};

const Extension* FindExtension(absl::string_view key) {
  const auto* const found =
      std::find_if(std::begin(kExtensions), std::end(kExtensions),
                   [key](const Extension& extension) { return extension.key == key; });
  return found == std::end(kExtensions) ? nullptr : found;
}

bool IsOff(const Extension& extension, const JsonValue& value) {
  const std::string* const text = value.AsString();
  return !extension.off.empty() && text != nullptr && *text == extension.off;
}

}  // namespace

bool IsExtension(absl::string_view key) {
  return FindExtension(key) != nullptr;
}

std::optional<Finding> CheckExtension(absl::string_view key, const JsonValue& value) {
  const Extension* const extension = FindExtension(key);
  if (extension == nullptr || IsOff(*extension, value)) return std::nullopt;
  return Finding{.rule_id = std::string(extension->rule_id),
                 .error_class = absl::StrCat("extension:", key),
                 .key = std::string(key),
                 .expected = std::string(extension->expected),
                 .found = DumpJson(value),
                 .section = "HPC rules, Hyperparameters",
                 .remedy = absl::StrCat(extension->way_out, ", or submit to the open division")};
}

}  // namespace assay::rules
