// Hyperparameters by which a run leaves what the reference does: data augmentation, frozen layers,
// decays of the learning rate that the reference lacks. Off by default, free in the open division,
// refused in the closed one.
//
// The closed division demands the reference's preprocessing, model and training method, and lists
// what may be tuned (HPC rules, Hyperparameters). No official tool looks for these keys, so it is
// the submission that is judged, before it runs.

#ifndef COMMON_RULES_EXTENSIONS_H_
#define COMMON_RULES_EXTENSIONS_H_

#include <optional>
#include <span>

#include "absl/strings/string_view.h"

#include "common/json_value.h"
#include "common/rules/finding.h"
#include "common/rules/text_rule.h"

namespace assay::rules {

// The rules about them, by id.
std::span<const TextRule> ExtensionRules();

// Whether the key is of an extension.
bool IsExtension(absl::string_view key);

// What a closed submission with this value has to hear; none if the key is not of an extension, or
// the value turns it off.
//   R-EXT-001 data augmentation; 002 gradient skipping; 003 decay of the learning rate over epochs.
std::optional<Finding> CheckExtension(absl::string_view key, const JsonValue& value);

}  // namespace assay::rules

#endif  // COMMON_RULES_EXTENSIONS_H_
