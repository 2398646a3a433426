#include "common/dataset/cosmo_dataset.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/dataset/example.h"
#include "common/dataset/generation.h"
#include "common/file.h"
#include "common/status.h"

namespace assay::dataset {
namespace {

// Changes whenever the same parameters would give other samples.
constexpr absl::string_view kGenerator = "cosmosyn-1";
constexpr absl::string_view kImported = "imported";

// The manifest for `spec` without its files.
Manifest Describe(const CosmoDatasetSpec& spec) {
  const CosmoParameters& parameters = spec.parameters;
  return {.name = spec.name,
          .benchmark = "cosmoflow",
          .generator = std::string(kGenerator),
          .parameters = {{"mode", std::string(CosmoModeName(parameters.mode))},
                         {"ranges", std::string(parameters.ranges.name)},
                         {"seed", absl::StrCat(parameters.seed)},
                         {"cell_mpc", absl::StrCat(parameters.cell_mpc)},
                         {"amplitudes", parameters.fixed_amplitudes ? "fixed" : "random"}},
          .cube_edge = parameters.edge,
          .compression = spec.compression,
          .train_samples = spec.train_samples,
          .validation_samples = spec.validation_samples};
}

class CosmoMaker : public SampleMaker {
 public:
  static absl::StatusOr<std::unique_ptr<SampleMaker>> Create(const std::string& dir,
                                                             const CosmoDatasetSpec& spec) {
    ASSIGN_OR_RETURN(std::unique_ptr<CosmoSynthesizer> synthesizer,
                     CosmoSynthesizer::Create(spec.parameters));
    return std::unique_ptr<SampleMaker>(new CosmoMaker(dir, spec, std::move(synthesizer)));
  }

  absl::StatusOr<ManifestFile> Ensure(Split split, uint32_t index) override {
    const std::string name = CosmoFileName(split, index);
    const std::string path = JoinPath(dir_, name);
    if (FileExists(path) && IsSample(path, split, index)) return EntryOf(name, reader_.stored());
    const CosmoSample sample = synthesizer_->Generate(split, index);
    std::string bytes = FrameRecord(EncodeCosmoSample(sample.counts, sample.targets));
    if (spec_.compression == Compression::kGzip) bytes = Gzip(bytes);
    RETURN_IF_ERROR(WriteSample(path, bytes));
    return EntryOf(name, bytes);
  }

 private:
  CosmoMaker(std::string dir, const CosmoDatasetSpec& spec,
             std::unique_ptr<CosmoSynthesizer> synthesizer)
      : dir_(std::move(dir)),
        spec_(spec),
        synthesizer_(std::move(synthesizer)),
        reader_(spec.compression) {}

  // Whether the file is a whole sample with the targets of this index. Its checksums guard the
  // rest, because only a generation with the same spec may have written here.
  bool IsSample(const std::string& path, Split split, uint32_t index) {
    const absl::StatusOr<absl::string_view> payload = reader_.ReadOnly(path);
    if (!payload.ok()) return false;
    const absl::StatusOr<CosmoSampleView> sample =
        ParseCosmoSample(*payload, spec_.parameters.edge);
    return sample.ok() && sample->targets == CosmoTargets(spec_.parameters, split, index);
  }

  const std::string dir_;
  const CosmoDatasetSpec spec_;
  const std::unique_ptr<CosmoSynthesizer> synthesizer_;
  RecordFile reader_;
};

// Reads and checks one file of a dataset made elsewhere.
absl::StatusOr<ManifestFile> CheckFile(const std::string& dir, const std::string& name, int edge,
                                       RecordFile* reader) {
  const std::string path = JoinPath(dir, name);
  ASSIGN_OR_RETURN(const absl::string_view payload, reader->ReadOnly(path));
  const absl::StatusOr<CosmoSampleView> sample = ParseCosmoSample(payload, edge);
  if (!sample.ok()) return Annotate(sample.status(), path);
  RETURN_IF_ERROR(Annotate(CheckCounts(*sample), path));
  return EntryOf(name, reader->stored());
}

}  // namespace

std::string CosmoFileName(Split split, uint32_t index) {
  return absl::StrFormat("%s/cosmosyn_univ_%c%010d_000%s", SplitName(split),
                         split == Split::kTrain ? 't' : 'v', index, kSampleSuffix);
}

absl::StatusOr<Manifest> GenerateCosmoDataset(const std::string& dir, const CosmoDatasetSpec& spec,
                                              int threads, ProgressCallback progress) {
  RETURN_IF_ERROR(CheckSampleCount("train_samples", spec.train_samples));
  RETURN_IF_ERROR(CheckSampleCount("validation_samples", spec.validation_samples));
  RETURN_IF_ERROR(CosmoSynthesizer::Create(spec.parameters).status());
  return Generate(
      {.dir = dir, .description = Describe(spec), .threads = threads},
      [&](int) { return CosmoMaker::Create(dir, spec); },
      [] { return std::vector<ManifestFile>(); }, std::move(progress));
}

absl::StatusOr<Manifest> ImportCosmoDataset(const std::string& dir, const ImportOptions& options,
                                            int threads, ProgressCallback progress) {
  if (FileExists(JoinPath(dir, kManifestName)))
    return absl::AlreadyExistsError(
        absl::StrCat(dir, " has a manifest already: verify it, or remove it to import anew"));
  ASSIGN_OR_RETURN(std::vector<std::string> names, ListSamples(dir, Split::kTrain));
  ASSIGN_OR_RETURN(const std::vector<std::string> validation, ListSamples(dir, Split::kValidation));
  Manifest manifest{.name = options.name,
                    .benchmark = "cosmoflow",
                    .generator = std::string(kImported),
                    .cube_edge = options.cube_edge,
                    .compression = options.compression,
                    .train_samples = static_cast<int64_t>(names.size()),
                    .validation_samples = static_cast<int64_t>(validation.size())};
  names.insert(names.end(), validation.begin(), validation.end());
  if (names.empty())
    return absl::FailedPreconditionError(absl::StrCat(dir, " holds no samples to import"));
  std::vector<RecordFile> readers(static_cast<size_t>(std::max(threads, 1)),
                                  RecordFile(options.compression));
  manifest.files.resize(names.size());
  ProgressMeter meter(static_cast<int64_t>(names.size()), std::move(progress));
  RETURN_IF_ERROR(ForEachIndex(
      static_cast<int64_t>(names.size()), threads, [&](int thread, int64_t i) -> absl::Status {
        const size_t at = static_cast<size_t>(i);
        ASSIGN_OR_RETURN(manifest.files[at], CheckFile(dir, names[at], options.cube_edge,
                                                       &readers[static_cast<size_t>(thread)]));
        meter.AddFile(manifest.files[at].bytes);
        return absl::OkStatus();
      }));
  RETURN_IF_ERROR(SaveManifest(dir, manifest));
  return manifest;
}

}  // namespace assay::dataset
