// What the history of results can be asked for: the fields of each kind of row, with their types
// and units. One table for the coordinator, which answers, and for those who ask.
//
// Pure; thread-safe.

#ifndef COMMON_HISTORY_FIELDS_H_
#define COMMON_HISTORY_FIELDS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "common/filter.h"

namespace assay {

enum class HistoryKind { kEntry, kRun, kFinding, kWorker, kHyperparameter };
inline constexpr HistoryKind kHistoryKinds[] = {HistoryKind::kEntry, HistoryKind::kRun,
                                                HistoryKind::kFinding, HistoryKind::kWorker,
                                                HistoryKind::kHyperparameter};

absl::string_view ToString(HistoryKind kind);  // "entry"
std::optional<HistoryKind> ParseHistoryKind(absl::string_view text);

// How a field's values are to be read.
enum class HistoryType {
  kText,
  kId,       // text with a number in it, by which it is ordered: e-42
  kInteger,  // a count
  kNumber,
  kBool,
  kTime,
  kTexts,  // several, such as the rules of its findings
  kMap,    // field.KEY, numbers or texts
};

struct HistoryField {
  absl::string_view name;
  HistoryType type = HistoryType::kText;
  absl::string_view unit;  // "min", "s", "J", "bytes"; empty: none
  absl::string_view help;
  // What a text may be; nothing: anything.
  std::vector<absl::string_view> choices = {};
  bool is_usual = false;  // shown where no columns are asked for
  // Names people, or what a site calls its nodes: who is shown it sees only what is his own
  // organisation's, also of what is published.
  bool is_private = false;
};

// In the order in which they are told.
const std::vector<HistoryField>& HistoryFields(HistoryKind kind);

// The field of that name or alias, without the key of a map; nullptr if there is none.
const HistoryField* FindHistoryField(HistoryKind kind, absl::string_view name);

// What a filter over rows of `kind` may name. `canonical_round`: the one name of a round that has
// several ("v1.0").
FilterSchema HistorySchema(HistoryKind kind,
                           std::string (*canonical_round)(absl::string_view name));

}  // namespace assay

#endif  // COMMON_HISTORY_FIELDS_H_
