#include "common/rules/borrowing.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace assay::rules {
namespace {

constexpr char kSection[] = "Training rules, Hyperparameter Borrowing";
constexpr std::array<absl::string_view, 3> kBatchSizes = {"global_batch_size", "local_batch_size",
                                                          "batchnorm_group_size"};

std::string Shown(const std::optional<JsonValue>& value) {
  return value ? DumpJson(*value) : "not given";
}

bool IsSame(const std::optional<JsonValue>& a, const std::optional<JsonValue>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return PythonEquals(*a, *b);
}

void CheckValues(const std::vector<BorrowedValue>& values, std::vector<Finding>* findings) {
  bool is_anything_borrowed = false;
  for (const BorrowedValue& value : values) {
    is_anything_borrowed = is_anything_borrowed || value.standing == "borrowed";
    if (value.standing != "refused") continue;
    findings->push_back({.rule_id = "R-BOR-001",
                         .error_class = absl::StrCat("borrowing:", value.key),
                         .key = value.key,
                         .expected = absl::StrCat("the lender's value, ", Shown(value.lender)),
                         .found = Shown(value.proposed),
                         .section = kSection,
                         .remedy = "take the lender's hyperparameters as a group; only batch sizes "
                                   "may be your own"});
  }
  if (is_anything_borrowed) return;
  findings->push_back({.rule_id = "R-BOR-005",
                       .severity = Severity::kWarning,
                       .error_class = "borrowing:nothing",
                       .expected = "a value that differs from the entry's own",
                       .found = "the same hyperparameters",
                       .section = kSection,
                       .remedy = "borrow from an entry with other hyperparameters"});
}

void CheckConfiguration(const BorrowingEntry& own, const BorrowingEntry& proposed,
                        std::vector<Finding>* findings) {
  std::map<std::string, std::pair<std::string, std::string>> members;
  for (const auto& [name, value] : own.configuration)
    members[name].first = value;
  for (const auto& [name, value] : proposed.configuration)
    members[name].second = value;
  members["organization"] = {own.organization, proposed.organization};
  for (const auto& [name, values] : members) {
    if (values.first == values.second) continue;
    findings->push_back({.rule_id = "R-BOR-002",
                         .error_class = absl::StrCat("borrowing:", name),
                         .key = name,
                         .expected = absl::StrCat("as in the entry, \"", values.first, "\""),
                         .found = absl::StrCat("\"", values.second, "\""),
                         .section = kSection,
                         .remedy = "run on the same system with the same software and "
                                   "configuration"});
  }
}

void CheckParties(const BorrowingEntry& own, const BorrowingEntry& other, absl::string_view who,
                  std::vector<Finding>* findings) {
  const std::pair<const char*, const std::string BorrowingEntry::*> kMembers[] = {
      {"benchmark", &BorrowingEntry::benchmark},
      {"division", &BorrowingEntry::division},
      {"round", &BorrowingEntry::round}};
  for (const auto& [name, member] : kMembers) {
    if (own.*member == other.*member) continue;
    findings->push_back({.rule_id = "R-BOR-003",
                         .error_class = absl::StrCat("borrowing:", name),
                         .key = name,
                         .expected = absl::StrCat("\"", own.*member, "\", as the entry"),
                         .found = absl::StrCat("\"", other.*member, "\" of the ", who),
                         .section = kSection,
                         .remedy = "borrow within one benchmark, division and round"});
  }
}

}  // namespace

bool IsBatchSize(absl::string_view key) {
  return std::find(kBatchSizes.begin(), kBatchSizes.end(), key) != kBatchSizes.end();
}

Hyperparameters BorrowValues(const Hyperparameters& own, const Hyperparameters& lender) {
  Hyperparameters values;
  for (const auto& [key, value] : lender)
    if (!IsBatchSize(key)) values.emplace(key, value);
  for (const auto& [key, value] : own)
    if (IsBatchSize(key)) values.emplace(key, value);
  return values;
}

std::vector<Finding> CheckBorrowing(const BorrowingEntry& own, const BorrowingEntry& lender,
                                    const BorrowingEntry& proposed) {
  std::vector<Finding> findings;
  CheckParties(own, lender, "lender", &findings);
  CheckParties(own, proposed, "new entry", &findings);
  if (own.organization == lender.organization)
    findings.push_back({.rule_id = "R-BOR-004",
                        .error_class = "borrowing:lender",
                        .key = "organization",
                        .expected = "another submitter's entry",
                        .found = absl::StrCat("one of \"", lender.organization, "\""),
                        .section = kSection,
                        .remedy = "your own entries need no borrowing: submit one as usual"});
  if (own.is_borrowed)
    findings.push_back({.rule_id = "R-BOR-005",
                        .error_class = "borrowing:twice",
                        .expected = "one borrowing for each entry",
                        .found = "an entry that has borrowed before",
                        .section = kSection,
                        .remedy = "name the entry that was submitted originally"});
  if (lender.values.empty())
    findings.push_back({.rule_id = "R-BOR-001",
                        .error_class = "borrowing:lender_values",
                        .expected = "the lender's hyperparameters",
                        .found = "an entry that says none",
                        .section = kSection,
                        .remedy = "borrow from an entry whose hyperparameters are known"});
  CheckConfiguration(own, proposed, &findings);
  CheckValues(CompareBorrowing(own.values, lender.values, proposed.values), &findings);
  return findings;
}

std::vector<BorrowedValue> CompareBorrowing(const Hyperparameters& own,
                                            const Hyperparameters& lender,
                                            const Hyperparameters& proposed) {
  std::map<std::string, BorrowedValue> rows;
  for (const auto& [key, value] : own)
    rows[key].own = value;
  for (const auto& [key, value] : lender)
    rows[key].lender = value;
  for (const auto& [key, value] : proposed)
    rows[key].proposed = value;
  std::vector<BorrowedValue> result;
  for (auto& [key, row] : rows) {
    row.key = key;
    if (IsSame(row.own, row.proposed) && (IsSame(row.lender, row.proposed) || IsBatchSize(key))) {
      row.standing = "same";
    } else if (IsSame(row.lender, row.proposed)) {
      row.standing = "borrowed";
    } else {
      row.standing = IsBatchSize(key) ? "batch size" : "refused";
    }
    result.push_back(std::move(row));
  }
  return result;
}

}  // namespace assay::rules
