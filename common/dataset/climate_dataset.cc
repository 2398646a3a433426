#include "common/dataset/climate_dataset.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/dataset/climate_file.h"
#include "common/dataset/generation.h"
#include "common/file.h"
#include "common/status.h"

namespace assay::dataset {
namespace {

// Changes whenever the same parameters would give other samples.
constexpr absl::string_view kGenerator = "camsyn-1";
constexpr int64_t kMaxSamples = 20'000'000;  // the years of the file names have four digits

Manifest Describe(const ClimateDatasetSpec& spec) {
  return {.name = spec.name,
          .benchmark = "deepcam",
          .generator = std::string(kGenerator),
          .parameters = {{"height", absl::StrCat(spec.parameters.extents.height)},
                         {"width", absl::StrCat(spec.parameters.extents.width)},
                         {"seed", absl::StrCat(spec.parameters.seed)}},
          .train_samples = spec.train_samples,
          .validation_samples = spec.validation_samples};
}

// Sums over the pixels of one sample, from which the whole split's statistics follow.
struct SampleSums {
  std::array<double, kClimateChannels> sum = {}, square = {};
  ClimateStatistics::Channels min = {}, max = {};
};

SampleSums SumsOf(std::span<const float> data) {
  SampleSums sums;
  sums.min.fill(std::numeric_limits<float>::max());
  sums.max.fill(std::numeric_limits<float>::lowest());
  for (size_t i = 0; i < data.size(); ++i) {
    const size_t c = i % kClimateChannels;
    sums.sum[c] += double{data[i]};
    sums.square[c] += double{data[i]} * double{data[i]};
    sums.min[c] = std::min(sums.min[c], data[i]);
    sums.max[c] = std::max(sums.max[c], data[i]);
  }
  return sums;
}

ClimateStatistics StatisticsOf(const std::vector<SampleSums>& samples, int64_t pixels) {
  ClimateStatistics statistics = {.count = std::ssize(samples)};
  statistics.min = samples.front().min;
  statistics.max = samples.front().max;
  std::array<double, kClimateChannels> sum = {}, square = {};
  for (const SampleSums& sample : samples) {
    for (size_t c = 0; c < kClimateChannels; ++c) {
      sum[c] += sample.sum[c];
      square[c] += sample.square[c];
      statistics.min[c] = std::min(statistics.min[c], sample.min[c]);
      statistics.max[c] = std::max(statistics.max[c], sample.max[c]);
    }
  }
  const double count = static_cast<double>(statistics.count) * static_cast<double>(pixels);
  for (size_t c = 0; c < kClimateChannels; ++c) {
    statistics.mean[c] = static_cast<float>(sum[c] / count);
    statistics.mean_square[c] = static_cast<float>(square[c] / count);
  }
  return statistics;
}

class ClimateMaker : public SampleMaker {
 public:
  // Leaves the sums of training sample i in (*sums)[i].
  static absl::StatusOr<std::unique_ptr<SampleMaker>> Create(const std::string& dir,
                                                             const ClimateDatasetSpec& spec,
                                                             std::vector<SampleSums>* sums) {
    ASSIGN_OR_RETURN(std::unique_ptr<ClimateSynthesizer> synthesizer,
                     ClimateSynthesizer::Create(spec.parameters));
    return std::unique_ptr<SampleMaker>(new ClimateMaker(dir, spec, std::move(synthesizer), sums));
  }

  absl::StatusOr<ManifestFile> Ensure(Split split, uint32_t index) override {
    const std::string name = ClimateFileName(split, index);
    const std::string path = JoinPath(dir_, name);
    std::string bytes;
    if (!FileExists(path) || !IsSample(path, &bytes)) {
      ClimateSample sample = synthesizer_->Generate(split, index);
      ASSIGN_OR_RETURN(bytes, EncodeClimateSample(sample));
      RETURN_IF_ERROR(WriteSample(path, bytes));
      data_ = std::move(sample.data);
    }
    if (split == Split::kTrain) (*sums_)[index] = SumsOf(data_);
    return EntryOf(name, bytes);
  }

 private:
  ClimateMaker(std::string dir, const ClimateDatasetSpec& spec,
               std::unique_ptr<ClimateSynthesizer> synthesizer, std::vector<SampleSums>* sums)
      : dir_(std::move(dir)), spec_(spec), synthesizer_(std::move(synthesizer)), sums_(sums) {}

  // Whether the file is a whole sample, whose numbers it then leaves in data_. Only a generation
  // with the same spec may have written here, so which sample it is follows from its name.
  bool IsSample(const std::string& path, std::string* bytes) {
    absl::StatusOr<std::string> file = ReadFile(path, kMaxFileBytes);
    if (!file.ok()) return false;
    *bytes = *std::move(file);
    const ClimateExtents& extents = spec_.parameters.extents;
    data_.resize(static_cast<size_t>(extents.values()));
    labels_.resize(static_cast<size_t>(extents.pixels()));
    return ParseClimateSample(*bytes, extents, {data_, labels_}).ok();
  }

  const std::string dir_;
  const ClimateDatasetSpec spec_;
  const std::unique_ptr<ClimateSynthesizer> synthesizer_;
  std::vector<SampleSums>* const sums_;
  std::vector<float> data_;  // of the last sample
  std::vector<uint8_t> labels_;
};

}  // namespace

std::string ClimateFileName(Split split, uint32_t index) {
  constexpr uint32_t kPerDay = 8, kDays = 28, kMonths = 12, kFirstYear = 1979;
  const uint32_t day = index / kPerDay, month = day / kDays;
  return absl::StrFormat("%s/data-%04d-%02d-%02d-%02d-%d%s", SplitName(split),
                         kFirstYear + month / kMonths, month % kMonths + 1, day % kDays + 1,
                         index % kPerDay, split == Split::kTrain ? 1 : 2, kClimateSuffix);
}

absl::StatusOr<Manifest> GenerateClimateDataset(const std::string& dir,
                                                const ClimateDatasetSpec& spec, int threads,
                                                ProgressCallback progress) {
  RETURN_IF_ERROR(CheckSampleCount("train_samples", spec.train_samples));
  RETURN_IF_ERROR(CheckSampleCount("validation_samples", spec.validation_samples));
  if (std::max(spec.train_samples, spec.validation_samples) > kMaxSamples)
    return absl::InvalidArgumentError(absl::StrCat("at most ", kMaxSamples, " samples in a split"));
  RETURN_IF_ERROR(ClimateSynthesizer::Create(spec.parameters).status());
  std::vector<SampleSums> sums(static_cast<size_t>(spec.train_samples));
  const auto finish = [&]() -> absl::StatusOr<std::vector<ManifestFile>> {
    const std::string name(kClimateStatisticsName);
    ASSIGN_OR_RETURN(const std::string bytes,
                     EncodeClimateStatistics(StatisticsOf(sums, spec.parameters.extents.pixels())));
    RETURN_IF_ERROR(WriteSample(JoinPath(dir, name), bytes));
    return std::vector<ManifestFile>{EntryOf(name, bytes)};
  };
  return Generate(
      {.dir = dir, .description = Describe(spec), .suffix = kClimateSuffix, .threads = threads},
      [&](int) { return ClimateMaker::Create(dir, spec, &sums); }, finish, std::move(progress));
}

absl::Status CheckClimateFile(const std::string& name, absl::string_view bytes) {
  if (name == kClimateStatisticsName) return ParseClimateStatistics(bytes).status();
  ASSIGN_OR_RETURN(const ClimateExtents extents, ClimateExtentsOf(bytes));
  std::vector<float> data(static_cast<size_t>(extents.values()));
  std::vector<uint8_t> labels(static_cast<size_t>(extents.pixels()));
  return ParseClimateSample(bytes, extents, {data, labels});
}

}  // namespace assay::dataset
