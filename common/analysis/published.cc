#include "common/analysis/published.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include "common/analysis/published_v0_7.h"

namespace assay::analysis {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// A column of a table: its name and what it says of an entry; NaN: nothing.
struct Quantity {
  const char* name;
  double (*value)(const Characteristics&);
};

double MeanOf(const std::optional<Moments>& moments) {
  return moments ? moments->mean : kNone;
}

double SdOf(const std::optional<Moments>& moments) {
  return moments ? moments->sd.value_or(kNone) : kNone;
}

using C = Characteristics;

constexpr Quantity kTable4Columns[] = {
    {"time to solution [min]", [](const C& c) { return c.entry.score_minutes.value_or(kNone); }}};

constexpr Quantity kTable5Columns[] = {
    {"staging mean [min]", [](const C& c) { return MeanOf(c.staging_minutes); }},
    {"staging sd [min]", [](const C& c) { return SdOf(c.staging_minutes); }},
    {"compute-to-staging ratio", [](const C& c) { return c.staging_per_epoch.value_or(kNone); }}};

constexpr Quantity kTable6Columns[] = {
    {"batch size", [](const C& c) { return c.batch_size.value_or(kNone); }},
    {"epochs mean", [](const C& c) { return MeanOf(c.epochs); }},
    {"epochs sd", [](const C& c) { return SdOf(c.epochs); }},
    {"train throughput/acc mean", [](const C& c) { return MeanOf(c.train_per_unit); }},
    {"train throughput/acc sd", [](const C& c) { return SdOf(c.train_per_unit); }},
    {"eval throughput/acc mean", [](const C& c) { return MeanOf(c.eval_per_unit); }},
    {"eval throughput/acc sd", [](const C& c) { return SdOf(c.eval_per_unit); }},
    // The mean by the scoring rule, its spread by the wall clock.
    {"time to solution mean [min]",
     [](const C& c) { return c.entry.score_minutes.value_or(kNone); }},
    {"time to solution sd [min]", [](const C& c) { return SdOf(c.minutes); }},
    {"compute budget [h*acc]", [](const C& c) { return c.budget_h.value_or(kNone); }}};

// Every cell of a table.
template <typename Row>
void AddTable(const char* place, std::span<const Row> rows, std::span<const Quantity> columns,
              std::span<const Characteristics> entries, std::vector<PublishedNumber>* numbers) {
  for (const Row& row : rows) {
    const Characteristics* entry = FindSubject(entries, row.subject);
    for (size_t i = 0; i < columns.size(); ++i) {
      PublishedNumber number = {.place = place,
                                .subject = row.subject,
                                .quantity = columns[i].name,
                                .printed = row.cells[i]};
      Settle(entry == nullptr ? kNone : columns[i].value(*entry), &number);
      numbers->push_back(std::move(number));
    }
  }
}

void Append(std::vector<PublishedNumber> more, std::vector<PublishedNumber>* numbers) {
  for (PublishedNumber& number : more)
    numbers->push_back(std::move(number));
}

const PaperEntry* FindPaperEntry(const Entry& entry) {
  for (const PaperEntry& paper : PaperEntries())
    if (entry.organization == paper.organization && entry.system == paper.system &&
        entry.benchmark == paper.benchmark)
      return &paper;
  return nullptr;
}

}  // namespace

const Characteristics* FindSubject(std::span<const Characteristics> entries,
                                   absl::string_view subject) {
  for (const Characteristics& entry : entries) {
    const PaperEntry* paper = FindPaperEntry(entry.entry);
    if (paper != nullptr && paper->subject == subject) return &entry;
  }
  return nullptr;
}

void Settle(double value, PublishedNumber* number) {
  if (!std::isfinite(value)) return;
  number->computed = value;
  const size_t point = number->printed.find('.');
  const int decimals =
      point == std::string::npos ? 0 : static_cast<int>(number->printed.size() - point - 1);
  number->rounded = absl::StrFormat("%.*f", decimals, value);
  number->is_equal = number->rounded == number->printed;
  if (number->is_equal) return;
  number->why = WhyDifferent(*number);
  if (number->why.empty()) number->why = "these are not the logs that the paper was written from";
}

std::vector<PublishedNumber> CompareWithPaper(std::span<const Characteristics> entries) {
  std::vector<PublishedNumber> numbers;
  AddTable<Table4Row>("Table 4", Table4(), kTable4Columns, entries, &numbers);
  Append(CaptionNumbers(entries), &numbers);
  AddTable<Table5Row>("Table 5", Table5(), kTable5Columns, entries, &numbers);
  AddTable<Table6Row>("Table 6", Table6(), kTable6Columns, entries, &numbers);
  Append(ProseNumbers(entries), &numbers);
  return numbers;
}

std::string PaperName(const Entry& entry) {
  const PaperEntry* paper = FindPaperEntry(entry);
  return paper == nullptr ? "" : paper->name;
}

std::string DifferenceFrom(absl::string_view table, const Characteristics& entry,
                           std::span<const PublishedNumber> numbers) {
  const PaperEntry* paper = FindPaperEntry(entry.entry);
  if (paper == nullptr) return "";
  std::vector<std::string> differences;
  for (const PublishedNumber& number : numbers) {
    if (number.place != table || number.subject != paper->subject) continue;
    if (!number.computed || number.is_equal) continue;
    differences.push_back(absl::StrCat("the paper prints ", number.printed, " for ",
                                       number.quantity, " (", table, "): ", number.why));
  }
  return absl::StrJoin(differences, "; ");
}

}  // namespace assay::analysis
