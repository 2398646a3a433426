// Filters over records, in the language of https://google.aip.dev/160: restrictions of fields
// joined by AND (or a space), OR, NOT (or -) and parentheses. OR binds tighter than AND, as the
// standard says.
//
//   benchmark=cosmoflow (round=hpc-2.0.0 OR round=hpc-3.0.0) minutes<10 -organization="A B"
//
// Pure functions of their arguments; thread-safe.

#ifndef COMMON_FILTER_H_
#define COMMON_FILTER_H_

#include <cstddef>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace assay {

inline constexpr size_t kFilterBytesMax = 4096;
inline constexpr int kFilterTermsMax = 50;

enum class FilterType {
  kText,    // = and != with * for any text; : for text within it, or one of several
  kNumber,  // all comparisons
  kTime,    // the same; 2026-11-23, 2026-11-23T10:00:00Z (UTC where no zone is said), ago("90d")
  kBool,    // = and !=, true or false
  kMap,     // field.KEY, of numbers or texts
};

struct FilterField {
  FilterType type = FilterType::kText;
  // What a text may be; empty: anything.
  std::vector<std::string> choices = {};
  // Of a value in the filter, before it is compared; nullptr: as it is.
  std::string (*canonical)(absl::string_view value) = nullptr;
};

// What a filter may name.
struct FilterSchema {
  std::map<std::string, FilterField> fields;
  std::map<std::string, std::string> aliases;  // of fields
};

// A record's value of a field. monostate: it has none, and no restriction but NOT is true of it.
using FilterValue =
    std::variant<std::monostate, bool, double, std::string, std::vector<std::string>, absl::Time>;

enum class Comparator { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kHas };
absl::string_view ToString(Comparator comparator);  // "!="

// One restriction of a parsed filter.
struct Restriction {
  std::string field;  // not an alias
  std::string key;    // of a map
  Comparator comparator = Comparator::kEqual;
  // As the field's type says; of a map a number if it can be read as one, and then either is meant.
  FilterValue value;
  std::string text;  // the value as it was written
};

struct FilterNode {
  enum class Kind { kAll, kAny, kNot, kRestriction };
  Kind kind = Kind::kAll;
  std::vector<FilterNode> parts;  // kAll of none: everything
  Restriction restriction;
};

// The filter that `text` is. INVALID_ARGUMENT, with the position in it (from 0), what is wrong and
// what would be right. `now`: what ago() counts from.
absl::StatusOr<FilterNode> ParseFilter(absl::string_view text, const FilterSchema& schema,
                                       absl::Time now);

// With all its parentheses, as it was understood. Parses to the same filter.
std::string FilterText(const FilterNode& node);

// Whether the record matches of which `value_of` says the fields.
bool Matches(
    const FilterNode& node,
    absl::FunctionRef<FilterValue(const std::string& field, const std::string& key)> value_of);

}  // namespace assay

#endif  // COMMON_FILTER_H_
