#include "common/rules/extensions.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"

namespace assay::rules {
namespace {

constexpr char kTuningSection[] = "HPC rules, Hyperparameters";

constexpr TextRule kExtensionRules[] = {
    {"R-EXT-001", "data_augmentation", "the reference's preprocessing, which has no augmentation",
     kTuningSection, "leave data_augmentation out, or submit to the open division"},
    {"R-EXT-002", "gradient_skip_layer", "the reference's training, which changes all layers",
     kTuningSection,
     "leave gradient_skip_layer and gradient_skip_after_epochs out, or submit to the open "
     "division"},
    {"R-EXT-003", "", "a schedule of the reference", kTuningSection,
     "use opt_learning_rate_decay_boundary_epochs and opt_learning_rate_decay_factor, or a "
     "scheduler_type of multistep or cosine_annealing, as the benchmark's reference has; or submit "
     "to the open division"},
};

struct Extension {
  absl::string_view key;
  const TextRule& rule;
  absl::string_view off = {};  // the text by which it is off; empty: only leaving it out does
};

constexpr Extension kExtensions[] = {
    {"data_augmentation", kExtensionRules[0], "none"},
    {"gradient_skip_layer", kExtensionRules[1]},
    {"gradient_skip_after_epochs", kExtensionRules[1]},
    {"opt_learning_rate_decay_epochs", kExtensionRules[2]},
    {"opt_learning_rate_decay_end_factor", kExtensionRules[2]},
    {"opt_learning_rate_decay_poly_power", kExtensionRules[2]},
    {"scheduler_power", kExtensionRules[2]},
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

std::span<const TextRule> ExtensionRules() {
  return kExtensionRules;
}

std::optional<Finding> CheckExtension(absl::string_view key, const JsonValue& value) {
  const Extension* const extension = FindExtension(key);
  if (extension == nullptr || IsOff(*extension, value)) return std::nullopt;
  Finding finding = Violation(extension->rule, absl::StrCat("extension:", key), DumpJson(value));
  finding.key = std::string(key);
  return finding;
}

}  // namespace assay::rules
