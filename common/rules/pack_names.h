// How the kinds of a rule set are called in a pack file. The names are part of the canonical form,
// so they never change.

#ifndef COMMON_RULES_PACK_NAMES_H_
#define COMMON_RULES_PACK_NAMES_H_

#include <optional>

#include "absl/strings/string_view.h"

#include "common/rules/ruleset.h"

namespace assay::rules {

absl::string_view NameOf(Occurrence occurrence);
absl::string_view NameOf(Flag flag);
absl::string_view NameOf(Topic topic);
absl::string_view NameOf(Condition::Kind kind);
absl::string_view NameOf(Effect::Kind kind);
absl::string_view NameOf(Counts counts);
absl::string_view NameOf(Assurance assurance);
absl::string_view NameOf(ReferenceUnit unit);

// The value called `name`; nullopt if there is none. T is one of the types above.
template <typename T>
std::optional<T> FromName(absl::string_view name);

// What an operand of a condition must be.
enum class Operands { kNone, kOne, kOneNumber, kSome };
Operands OperandsOf(Condition::Kind kind);

bool UsesFlag(Condition::Kind kind);
bool UsesMember(Condition::Kind kind);

}  // namespace assay::rules

#endif  // COMMON_RULES_PACK_NAMES_H_
