#include "common/rules/borrowing.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace assay::rules {
namespace {

constexpr char kSection[] = "Training rules, Hyperparameter Borrowing";
constexpr std::array<absl::string_view, 4> kBatchSizes = {
    "global_batch_size", "local_batch_size", "local_eval_batch_size", "batchnorm_group_size"};

constexpr TextRule kBorrowingRules[] = {
    {"R-BOR-001", "", "the lender's hyperparameters as a group; only batch sizes may be one's own",
     kSection,
     "take the lender's hyperparameters as a group, with 'assay entry borrow'; only batch sizes "
     "may be your own"},
    {"R-BOR-002", "", "the system, software and configuration of the original entry", kSection,
     "run on the same system with the same software and configuration"},
    {"R-BOR-003", "", "entries of one benchmark, division and round", kSection,
     "borrow within one benchmark, division and round"},
    {"R-BOR-004", "lender_entry", "another submitter's entry", kSection,
     "your own entries need no borrowing: submit one as usual"},
    {"R-BOR-005", "own_entry", "one borrowing for each entry", kSection,
     "name an entry that was submitted originally and that no other borrows in place of"},
};

// A violation of the rule `id`; `key` and `expected` are the rule's own where they are empty.
Finding BorrowingFinding(absl::string_view id, absl::string_view name, std::string found,
                         absl::string_view key = "", std::string expected = "") {
  Finding finding =
      Violation(FindRule(kBorrowingRules, id), absl::StrCat("borrowing:", name), std::move(found));
  if (!key.empty()) finding.key = std::string(key);
  if (!expected.empty()) finding.expected = std::move(expected);
  return finding;
}

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
    findings->push_back(
        BorrowingFinding("R-BOR-001", value.key, Shown(value.proposed), value.key,
                         absl::StrCat("the lender's value, ", Shown(value.lender))));
  }
  if (is_anything_borrowed) return;
  Finding& nothing = findings->emplace_back(
      BorrowingFinding("R-BOR-005", "nothing", "the same hyperparameters", "lender_entry",
                       "a value that differs from the entry's own"));
  nothing.severity = Severity::kWarning;
  nothing.remedy = "borrow from an entry with other hyperparameters";
}

// By the name that a submission file gives it, as text; empty where it is not said.
std::map<std::string, std::string> MembersOf(const BorrowingConfiguration& configuration) {
  const auto count = [](int32_t n) { return n > 0 ? absl::StrCat(n) : std::string(); };
  return {{"system", configuration.system},
          {"dataset", configuration.dataset},
          {"nodes", count(configuration.nodes)},
          {"ranks_per_node", count(configuration.ranks_per_node)},
          {"backend", configuration.backend},
          {"staging", configuration.staging}};
}

void CheckConfiguration(const BorrowingEntry& own, const BorrowingEntry& proposed,
                        std::vector<Finding>* findings) {
  const auto compare = [&](const std::string& name, const std::string& before,
                           const std::string& after) {
    if (before == after) return;
    findings->push_back(BorrowingFinding("R-BOR-002", name, absl::StrCat("\"", after, "\""), name,
                                         absl::StrCat("as in the entry, \"", before, "\"")));
  };
  const std::map<std::string, std::string> after = MembersOf(proposed.configuration);
  for (const auto& [name, before] : MembersOf(own.configuration))
    if (!before.empty()) compare(name, before, after.at(name));
  std::map<std::string, std::string> before = own.configuration.program;
  std::map<std::string, std::string> now = proposed.configuration.program;
  for (const auto& [key, value] : proposed.configuration.program)
    before.try_emplace(key);
  for (const auto& [key, value] : before)
    compare(absl::StrCat("workload.", key), value, now[key]);
  const auto joined = [](const std::map<std::string, std::string>& labels) {
    return absl::StrJoin(labels, ",", absl::PairFormatter("="));
  };
  compare("labels", joined(own.configuration.labels), joined(proposed.configuration.labels));
  compare("organization", own.organization, proposed.organization);
}

void CheckParties(const BorrowingEntry& own, const BorrowingEntry& other, absl::string_view who,
                  std::vector<Finding>* findings) {
  const std::pair<const char*, const std::string BorrowingEntry::*> kMembers[] = {
      {"benchmark", &BorrowingEntry::benchmark},
      {"division", &BorrowingEntry::division},
      {"round", &BorrowingEntry::round}};
  for (const auto& [name, member] : kMembers) {
    if (own.*member == other.*member) continue;
    findings->push_back(BorrowingFinding("R-BOR-003", name,
                                         absl::StrCat("\"", other.*member, "\" of the ", who), name,
                                         absl::StrCat("\"", own.*member, "\", as the entry")));
  }
}

void CheckFirstTime(const BorrowingEntry& own, std::vector<Finding>* findings) {
  if (own.is_borrowed)
    findings->push_back(
        BorrowingFinding("R-BOR-005", "twice", "an entry that has borrowed before"));
  if (!own.replaced_by.empty())
    findings->push_back(BorrowingFinding(
        "R-BOR-005", "twice",
        absl::StrCat("an entry in whose place ", own.replaced_by, " borrows already")));
}

// Withdrawn entries stay as evidence; nothing is built on them.
void CheckStanding(const BorrowingEntry& own, const BorrowingEntry& lender,
                   std::vector<Finding>* findings) {
  if (own.is_withdrawn)
    findings->push_back(BorrowingFinding("R-BOR-005", "withdrawn", "an entry that is withdrawn"));
  if (!lender.is_withdrawn) return;
  Finding& finding = findings->emplace_back(
      BorrowingFinding("R-BOR-004", "withdrawn", "an entry that is withdrawn", "",
                       "another submitter's entry that is not withdrawn"));
  finding.remedy = "borrow from an entry that stands";
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

std::span<const TextRule> BorrowingRules() {
  return kBorrowingRules;
}

std::vector<Finding> CheckBorrowing(const BorrowingEntry& own, const BorrowingEntry& lender,
                                    const BorrowingEntry& proposed) {
  std::vector<Finding> findings;
  CheckParties(own, lender, "lender", &findings);
  CheckParties(own, proposed, "new entry", &findings);
  if (own.organization == lender.organization)
    findings.push_back(BorrowingFinding("R-BOR-004", "lender",
                                        absl::StrCat("one of \"", lender.organization, "\"")));
  CheckFirstTime(own, &findings);
  CheckStanding(own, lender, &findings);
  if (lender.values.empty()) {
    Finding& unknown = findings.emplace_back(
        BorrowingFinding("R-BOR-001", "lender_values", "an entry that says no hyperparameters",
                         "lender_entry", "the lender's hyperparameters"));
    unknown.remedy = "borrow from an entry whose hyperparameters are known";
  }
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
