// The numbers in the paper's captions and prose, each with its formula.

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/analysis/published_v0_7.h"

namespace assay::analysis {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The paper's entries by name. What is missing is NaN, and so is all that follows from it.
class Book {
 public:
  explicit Book(std::span<const Characteristics> entries) : entries_(entries) {}

  // In per cent of the time to solution.
  double Share(absl::string_view subject, double Breakdown::*part) const {
    const Characteristics* entry = Find(subject);
    return entry == nullptr || !entry->breakdown ? kNone : 100 * ((*entry->breakdown).*part);
  }
  double Score(absl::string_view subject) const {
    const Characteristics* entry = Find(subject);
    return entry == nullptr ? kNone : entry->entry.score_minutes.value_or(kNone);
  }
  // As printed in Table 4.
  double RoundedScore(absl::string_view subject) const {
    return std::round(Score(subject) * 100) / 100;
  }
  double EvaluationRate(absl::string_view subject) const {
    const Characteristics* entry = Find(subject);
    return entry == nullptr ? kNone : entry->evaluation_rate().value_or(kNone);
  }
  double Mean(absl::string_view subject, std::optional<Moments> Characteristics::*what) const {
    const Characteristics* entry = Find(subject);
    return entry == nullptr || !(entry->*what) ? kNone : (entry->*what)->mean;
  }
  double Sd(absl::string_view subject, std::optional<Moments> Characteristics::*what) const {
    const Characteristics* entry = Find(subject);
    return entry == nullptr || !(entry->*what) ? kNone : (entry->*what)->sd.value_or(kNone);
  }
  // Training samples per second of the whole system.
  double TrainRate(absl::string_view subject) const {
    const Characteristics* entry = Find(subject);
    return entry == nullptr ? kNone
                            : Mean(subject, &Characteristics::train_per_unit) *
                                  static_cast<double>(entry->entry.units());
  }
  // The mean of the relative standard deviations of the time to solution, in per cent.
  double RelativeSd(std::span<const absl::string_view> subjects) const {
    double sum = 0;
    for (const absl::string_view subject : subjects)
      sum += Sd(subject, &Characteristics::minutes) / Mean(subject, &Characteristics::minutes);
    return 100 * sum / static_cast<double>(subjects.size());
  }

 private:
  const Characteristics* Find(absl::string_view subject) const {
    return FindSubject(entries_, subject);
  }
  std::span<const Characteristics> entries_;
};

constexpr absl::string_view kDaint128 = "CosmoFlow/Piz-Daint-128";
constexpr absl::string_view kDaint256 = "CosmoFlow/Piz-Daint-256";
constexpr absl::string_view kAbci512 = "CosmoFlow/ABCI-512";
constexpr absl::string_view kAbci2048 = "CosmoFlow/*ABCI-2048";
constexpr absl::string_view kFugaku512 = "CosmoFlow/Fugaku-512";
constexpr absl::string_view kFugaku8192 = "CosmoFlow/Fugaku-8192";
constexpr absl::string_view kFugaku16384 = "CosmoFlow/*Fugaku-16384";
constexpr absl::string_view kDeepcamAbci = "DeepCAM/ABCI-1024";
constexpr absl::string_view kDeepcamAbciOpen = "DeepCAM/*ABCI-1024";
constexpr absl::string_view kDeepcamCori = "DeepCAM/Cori-GPU-64";
constexpr absl::string_view kBatch64[] = {"CosmoFlow/Cori-GPU-64", "CosmoFlow/HAL-64",
                                          "CosmoFlow/Frontera-RTX-64"};
constexpr absl::string_view kDeepcam[] = {kDeepcamAbci, kDeepcamCori, kDeepcamAbciOpen};
constexpr absl::string_view kStable[] = {kAbci2048, kFugaku16384};
constexpr absl::string_view kOtherCosmoflow[] = {kDaint128,
                                                 kDaint256,
                                                 kAbci512,
                                                 kFugaku512,
                                                 kFugaku8192,
                                                 "CosmoFlow/Cori-GPU-64",
                                                 "CosmoFlow/Cori-KNL-512",
                                                 "CosmoFlow/HAL-64",
                                                 "CosmoFlow/Frontera-RTX-64",
                                                 "CosmoFlow/*Cori-KNL-1024"};

// Percent by which `value` is more than `base`.
double Gain(double value, double base) {
  return 100 * (value / base - 1);
}

double EpochsOfBatch64(const Book& book) {
  double sum = 0;
  for (const absl::string_view subject : kBatch64)
    sum += book.Mean(subject, &Characteristics::epochs);
  return sum / static_cast<double>(std::size(kBatch64));
}

// By how many per cent the larger machine beats perfect scaling with its own epochs.
double FasterThanExpected(const Book& book) {
  const double epochs = book.Mean(kDaint256, &Characteristics::epochs) /
                        book.Mean(kDaint128, &Characteristics::epochs);
  return 100 * (1 - book.Score(kDaint256) / (book.Score(kDaint128) / 2 * epochs));
}

struct Statement {
  const char* place;
  const char* quantity;
  const char* printed;
  double (*value)(const Book&);
};

constexpr Statement kCaptions[] = {{"Table 4 caption", "rel. sd DeepCAM [%]", "1.7",
                                    [](const Book& b) { return b.RelativeSd(kDeepcam); }},
                                   {"Table 4 caption", "rel. sd *ABCI-2048/*Fugaku-16384 [%]",
                                    "2.8", [](const Book& b) { return b.RelativeSd(kStable); }},
                                   {"Table 4 caption", "rel. sd other CosmoFlow [%]", "11.1",
                                    [](const Book& b) { return b.RelativeSd(kOtherCosmoflow); }}};

using C = Characteristics;

constexpr Statement kProse[] = {
    {"section 4.1.1", "staging share ABCI DeepCAM closed [%]", "19",
     [](const Book& b) { return b.Share(kDeepcamAbci, &Breakdown::staging); }},
    {"section 4.1.1", "staging share ABCI DeepCAM open [%]", "19",
     [](const Book& b) { return b.Share(kDeepcamAbciOpen, &Breakdown::staging); }},
    {"section 4.1.1", "staging share ABCI-512 CosmoFlow [%]", "2.2",
     [](const Book& b) { return b.Share(kAbci512, &Breakdown::staging); }},
    {"section 4.1.1", "staging share *ABCI-2048 CosmoFlow [%]", "1.5",
     [](const Book& b) { return b.Share(kAbci2048, &Breakdown::staging); }},
    {"section 4.1.2", "eval share DeepCAM Cori-GPU [%]", "36.3",
     [](const Book& b) { return b.Share(kDeepcamCori, &Breakdown::evaluation); }},
    {"section 4.1.2", "eval share DeepCAM ABCI closed [%]", "4",
     [](const Book& b) { return b.Share(kDeepcamAbci, &Breakdown::evaluation); }},
    {"section 4.1.2", "eval share DeepCAM ABCI open [%]", "1.3",
     [](const Book& b) { return b.Share(kDeepcamAbciOpen, &Breakdown::evaluation); }},
    {"section 4.1.2", "evaluations per epoch Cori-GPU / ABCI closed (DeepCAM)", "8",
     [](const Book& b) { return b.EvaluationRate(kDeepcamCori) / b.EvaluationRate(kDeepcamAbci); }},
    {"section 4.1.2", "evaluations per epoch Cori-GPU / ABCI open (DeepCAM)", "36",
     [](const Book& b) {
       return b.EvaluationRate(kDeepcamCori) / b.EvaluationRate(kDeepcamAbciOpen);
     }},
    {"section 1", "speed-up CosmoFlow open/closed ABCI", "2.61",
     [](const Book& b) { return b.Score(kAbci512) / b.Score(kAbci2048); }},
    {"section 1", "speed-up DeepCAM open/closed ABCI", "1.12",
     [](const Book& b) { return b.Score(kDeepcamAbci) / b.Score(kDeepcamAbciOpen); }},
    // Of the cells as printed: unrounded it is 3.3748.
    {"section 1", "speed-up CosmoFlow open/closed Fugaku", "3.38",
     [](const Book& b) { return b.RoundedScore(kFugaku8192) / b.RoundedScore(kFugaku16384); }},
    {"section 4.2.1", "model-parallel speed-up Fugaku-8192 vs Fugaku-512", "2.62",
     [](const Book& b) { return b.TrainRate(kFugaku8192) / b.TrainRate(kFugaku512); }},
    {"section 4.2.1", "model-parallel speed-up *Fugaku-16384 vs 8 x Fugaku-512", "1.98",
     [](const Book& b) { return b.TrainRate(kFugaku16384) / (8 * b.TrainRate(kFugaku512)); }},
    {"section 4.2.4", "Piz Daint train throughput/GPU 128->256 [%]", "8",
     [](const Book& b) {
       return Gain(b.Mean(kDaint256, &C::train_per_unit), b.Mean(kDaint128, &C::train_per_unit));
     }},
    {"section 4.2.4", "Piz Daint eval throughput/GPU 128->256 [%]", "167",
     [](const Book& b) {
       return Gain(b.Mean(kDaint256, &C::eval_per_unit), b.Mean(kDaint128, &C::eval_per_unit));
     }},
    {"section 4.2.4", "Piz Daint 256: % faster than expected from epochs", "12",
     FasterThanExpected},
    {"section 4.1.2", "epochs batch 256 / batch 64", "1.3",
     [](const Book& b) { return b.Mean(kDaint128, &C::epochs) / EpochsOfBatch64(b); }},
    {"section 4.1.2", "epochs mean batch 512 / batch 256 (Piz Daint)", "1.6",
     [](const Book& b) { return b.Mean(kDaint256, &C::epochs) / b.Mean(kDaint128, &C::epochs); }},
    {"section 4.1.2", "epochs sd batch 512 / batch 256 (Piz Daint)", "7",
     [](const Book& b) { return b.Sd(kDaint256, &C::epochs) / b.Sd(kDaint128, &C::epochs); }},
    {"section 4.1.3", "eval/train throughput gap CosmoFlow ABCI-512", "5.7",
     [](const Book& b) {
       return b.Mean(kAbci512, &C::eval_per_unit) / b.Mean(kAbci512, &C::train_per_unit);
     }},
    {"section 4.1.3", "eval/train throughput gap DeepCAM ABCI-1024", "1.4", [](const Book& b) {
       return b.Mean(kDeepcamAbci, &C::eval_per_unit) / b.Mean(kDeepcamAbci, &C::train_per_unit);
     }}};

std::vector<PublishedNumber> Evaluate(std::span<const Statement> statements,
                                      std::span<const Characteristics> entries) {
  const Book book(entries);
  std::vector<PublishedNumber> numbers;
  for (const Statement& statement : statements) {
    PublishedNumber number = {
        .place = statement.place, .quantity = statement.quantity, .printed = statement.printed};
    Settle(statement.value(book), &number);
    numbers.push_back(std::move(number));
  }
  return numbers;
}

}  // namespace

std::vector<PublishedNumber> CaptionNumbers(std::span<const Characteristics> entries) {
  return Evaluate(kCaptions, entries);
}

std::vector<PublishedNumber> ProseNumbers(std::span<const Characteristics> entries) {
  return Evaluate(kProse, entries);
}

}  // namespace assay::analysis
