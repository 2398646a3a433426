#include "common/rules/pack_names.h"

#include <algorithm>
#include <iterator>

namespace assay::rules {
namespace {

template <typename T>
struct Named {
  T value;
  absl::string_view name;
};

constexpr Named<Occurrence> kOccurrences[] = {{Occurrence::kOptional, "optional"},
                                              {Occurrence::kExactlyOne, "exactly_one"},
                                              {Occurrence::kAtLeastOne, "at_least_one"},
                                              {Occurrence::kAtLeastOneOr, "at_least_one_or"}};

constexpr Named<Flag> kFlags[] = {{Flag::kInitStarted, "init_started"},
                                  {Flag::kInitStopped, "init_stopped"},
                                  {Flag::kRunStarted, "run_started"},
                                  {Flag::kRunStopped, "run_stopped"},
                                  {Flag::kStagingStarted, "staging_started"}};

constexpr Named<Topic> kTopics[] = {{Topic::kRecord, "record"},
                                    {Topic::kTiming, "timing"},
                                    {Topic::kHyperparameter, "hyperparameter"},
                                    {Topic::kQuality, "quality"},
                                    {Topic::kSystem, "system"},
                                    {Topic::kData, "data"}};

constexpr Named<Effect::Kind> kEffects[] = {{Effect::Kind::kSetFlag, "set_flag"},
                                            {Effect::Kind::kNoteInitStart, "note_init_start"},
                                            {Effect::Kind::kEnqueue, "enqueue"}};

constexpr Named<Assurance> kAssurances[] = {{Assurance::kSelfReported, "self-reported"},
                                            {Assurance::kObserved, "observed"},
                                            {Assurance::kProven, "proven"}};
constexpr Named<Counts> kCounts[] = {{Counts::kCompliant, "compliant"},
                                     {Counts::kReachedTarget, "reached_target"}};

constexpr Named<ReferenceUnit> kUnits[] = {{ReferenceUnit::kEpochs, "epochs"},
                                           {ReferenceUnit::kSamples, "samples"}};

using Kind = Condition::Kind;

struct ConditionRow {
  Kind value;
  absl::string_view name;
  Operands operands;
};

constexpr ConditionRow kConditions[] = {
    {Kind::kNotEqual, "not_equal", Operands::kOne},
    {Kind::kOneOf, "one_of", Operands::kSome},
    {Kind::kOneOfSet, "one_of_set", Operands::kSome},
    {Kind::kGreater, "greater", Operands::kOneNumber},
    {Kind::kAtLeast, "at_least", Operands::kOneNumber},
    {Kind::kLess, "less", Operands::kOneNumber},
    {Kind::kAtMost, "at_most", Operands::kOneNumber},
    {Kind::kClose, "close", Operands::kOneNumber},
    {Kind::kLength, "length", Operands::kOneNumber},
    {Kind::kHasLength, "has_length", Operands::kNone},
    {Kind::kEachGreater, "each_greater", Operands::kOneNumber},
    {Kind::kEachAtMost, "each_at_most", Operands::kOneNumber},
    {Kind::kEachLess, "each_less", Operands::kOneNumber},
    {Kind::kTrue, "true", Operands::kNone},
    {Kind::kMetadataHas, "metadata_has", Operands::kNone},
    {Kind::kMetadataGreater, "metadata_greater", Operands::kOneNumber},
    {Kind::kFlagSet, "flag_set", Operands::kNone},
    {Kind::kFlagClear, "flag_clear", Operands::kNone},
    {Kind::kInitWithin, "init_within", Operands::kOneNumber},
};

template <typename Table, typename T>
absl::string_view Name(const Table& table, T value) {
  const auto* row = std::find_if(std::begin(table), std::end(table),
                                 [&](const auto& named) { return named.value == value; });
  return row == std::end(table) ? absl::string_view() : row->name;
}

template <typename T, typename Table>
std::optional<T> Value(const Table& table, absl::string_view name) {
  const auto* row = std::find_if(std::begin(table), std::end(table),
                                 [&](const auto& named) { return named.name == name; });
  return row == std::end(table) ? std::nullopt : std::optional<T>(row->value);
}

}  // namespace

absl::string_view NameOf(Occurrence occurrence) {
  return Name(kOccurrences, occurrence);
}
absl::string_view NameOf(Flag flag) {
  return Name(kFlags, flag);
}
absl::string_view NameOf(Topic topic) {
  return Name(kTopics, topic);
}
absl::string_view NameOf(Condition::Kind kind) {
  return Name(kConditions, kind);
}
absl::string_view NameOf(Effect::Kind kind) {
  return Name(kEffects, kind);
}

absl::string_view NameOf(Counts counts) {
  return Name(kCounts, counts);
}
absl::string_view NameOf(Assurance assurance) {
  return Name(kAssurances, assurance);
}
absl::string_view NameOf(ReferenceUnit unit) {
  return Name(kUnits, unit);
}

template <>
std::optional<Counts> FromName(absl::string_view name) {
  return Value<Counts>(kCounts, name);
}
template <>
std::optional<Assurance> FromName(absl::string_view name) {
  return Value<Assurance>(kAssurances, name);
}
template <>
std::optional<ReferenceUnit> FromName(absl::string_view name) {
  return Value<ReferenceUnit>(kUnits, name);
}
template <>
std::optional<Occurrence> FromName(absl::string_view name) {
  return Value<Occurrence>(kOccurrences, name);
}
template <>
std::optional<Flag> FromName(absl::string_view name) {
  return Value<Flag>(kFlags, name);
}
template <>
std::optional<Topic> FromName(absl::string_view name) {
  return Value<Topic>(kTopics, name);
}
template <>
std::optional<Condition::Kind> FromName(absl::string_view name) {
  return Value<Condition::Kind>(kConditions, name);
}
template <>
std::optional<Effect::Kind> FromName(absl::string_view name) {
  return Value<Effect::Kind>(kEffects, name);
}

Operands OperandsOf(Condition::Kind kind) {
  const auto* row =
      std::find_if(std::begin(kConditions), std::end(kConditions),
                   [&](const ConditionRow& candidate) { return candidate.value == kind; });
  return row == std::end(kConditions) ? Operands::kNone : row->operands;
}

bool UsesFlag(Condition::Kind kind) {
  return kind == Condition::Kind::kFlagSet || kind == Condition::Kind::kFlagClear;
}

bool UsesMember(Condition::Kind kind) {
  return kind == Condition::Kind::kMetadataHas || kind == Condition::Kind::kMetadataGreater;
}

}  // namespace assay::rules
