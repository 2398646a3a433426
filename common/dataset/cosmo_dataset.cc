#include "common/dataset/cosmo_dataset.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "common/dataset/example.h"
#include "common/file.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::dataset {
namespace {

// Changes whenever the same parameters would give other samples.
constexpr absl::string_view kGenerator = "cosmosyn-1";
constexpr absl::string_view kImported = "imported";
// Present while a dataset is being generated: says which one.
constexpr absl::string_view kUnfinishedName = "unfinished.json";

absl::Status CheckCount(absl::string_view what, int64_t count) {
  constexpr int64_t kMaxSamples = (int64_t{1} << 31) - 1;
  if (count >= 1 && count <= kMaxSamples) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", count, "; it must be in 1..", kMaxSamples));
}

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

bool DescribesSame(const Manifest& a, const Manifest& b) {
  Manifest without_files = a;
  without_files.files = b.files;
  return without_files == b;
}

// Writes through a temporary name, without waiting for the disk: a crash may leave a file without
// its content, which the next call finds out by reading it.
absl::Status WriteSample(const std::string& path, absl::string_view bytes) {
  const std::string temporary = absl::StrCat(path, ".tmp");
  const UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", temporary));
  RETURN_IF_ERROR(Annotate(WriteAll(fd.get(), bytes), temporary));
  if (rename(temporary.c_str(), path.c_str()) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot rename to ", path));
  return absl::OkStatus();
}

absl::Status SyncFileSystem(const std::string& dir) {
  const UniqueFd fd(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", dir));
  if (syncfs(fd.get()) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot sync ", dir));
  return absl::OkStatus();
}

// Makes the files of one thread.
class SampleWriter {
 public:
  static absl::StatusOr<std::unique_ptr<SampleWriter>> Create(const std::string& dir,
                                                              const CosmoDatasetSpec& spec) {
    ASSIGN_OR_RETURN(std::unique_ptr<CosmoSynthesizer> synthesizer,
                     CosmoSynthesizer::Create(spec.parameters));
    return std::unique_ptr<SampleWriter>(new SampleWriter(dir, spec, std::move(synthesizer)));
  }

  // Makes sure that the file of a sample is there and right.
  absl::StatusOr<ManifestFile> Ensure(Split split, uint32_t index) {
    const std::string name = CosmoFileName(split, index);
    const std::string path = JoinPath(dir_, name);
    if (FileExists(path) && IsSample(path, split, index)) return Entry(name, reader_.stored());
    const CosmoSample sample = synthesizer_->Generate(split, index);
    std::string bytes = FrameRecord(EncodeCosmoSample(sample.counts, sample.targets));
    if (spec_.compression == Compression::kGzip) bytes = Gzip(bytes);
    RETURN_IF_ERROR(WriteSample(path, bytes));
    return Entry(name, bytes);
  }

 private:
  SampleWriter(std::string dir, const CosmoDatasetSpec& spec,
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

  static ManifestFile Entry(const std::string& name, absl::string_view bytes) {
    return {name, static_cast<int64_t>(bytes.size()), Sha256Hex(bytes)};
  }

  const std::string dir_;
  const CosmoDatasetSpec spec_;
  const std::unique_ptr<CosmoSynthesizer> synthesizer_;
  RecordFile reader_;
};

bool AllFilesPresent(const std::string& dir, const Manifest& manifest) {
  return std::all_of(manifest.files.begin(), manifest.files.end(), [&](const ManifestFile& file) {
    const absl::StatusOr<int64_t> size = FileSize(JoinPath(dir, file.path));
    return size.ok() && *size == file.bytes;
  });
}

absl::Status OtherDataset(const std::string& dir, absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat(dir, " holds ", what, ": choose another directory, or remove this one first"));
}

// Makes the folders and leaves a note of what is being generated, unless one is there.
absl::Status BeginGeneration(const std::string& dir, const Manifest& description) {
  const std::string note = JoinPath(dir, kUnfinishedName);
  bool has_samples = false;
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    RETURN_IF_ERROR(MakeDirectories(JoinPath(dir, SplitName(split))));
    ASSIGN_OR_RETURN(const std::vector<std::string> samples, ListSamples(dir, split));
    has_samples = has_samples || !samples.empty();
  }
  if (!FileExists(note)) {
    if (has_samples) return OtherDataset(dir, "samples of unknown origin");
    return WriteFileAtomic(note, PrintManifest(description));
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(note));
  const absl::StatusOr<Manifest> begun = ParseManifest(text);
  if (!begun.ok()) return Annotate(begun.status(), note);
  if (!DescribesSame(*begun, description))
    return OtherDataset(dir, "an unfinished dataset with other parameters");
  return absl::OkStatus();
}

// Runs Ensure for every sample.
absl::StatusOr<std::vector<ManifestFile>> WriteSamples(const std::string& dir,
                                                       const CosmoDatasetSpec& spec, int threads,
                                                       ProgressCallback progress) {
  std::vector<std::unique_ptr<SampleWriter>> writers;
  for (int i = 0; i < std::max(threads, 1); ++i) {
    ASSIGN_OR_RETURN(writers.emplace_back(), SampleWriter::Create(dir, spec));
  }
  const int64_t total = spec.train_samples + spec.validation_samples;
  std::vector<ManifestFile> files(static_cast<size_t>(total));
  ProgressMeter meter(total, std::move(progress));
  RETURN_IF_ERROR(ForEachIndex(total, threads, [&](int thread, int64_t i) -> absl::Status {
    const bool is_train = i < spec.train_samples;
    const int64_t index = is_train ? i : i - spec.train_samples;
    ASSIGN_OR_RETURN(ManifestFile file, writers[static_cast<size_t>(thread)]->Ensure(
                                            is_train ? Split::kTrain : Split::kValidation,
                                            static_cast<uint32_t>(index)));
    meter.AddFile(file.bytes);
    files[static_cast<size_t>(i)] = std::move(file);
    return absl::OkStatus();
  }));
  return files;
}

// Reads and checks one file of a dataset made elsewhere.
absl::StatusOr<ManifestFile> CheckFile(const std::string& dir, const std::string& name, int edge,
                                       RecordFile* reader) {
  const std::string path = JoinPath(dir, name);
  ASSIGN_OR_RETURN(const absl::string_view payload, reader->ReadOnly(path));
  const absl::StatusOr<CosmoSampleView> sample = ParseCosmoSample(payload, edge);
  if (!sample.ok()) return Annotate(sample.status(), path);
  RETURN_IF_ERROR(Annotate(CheckCounts(*sample), path));
  const absl::string_view stored = reader->stored();
  return ManifestFile{name, static_cast<int64_t>(stored.size()), Sha256Hex(stored)};
}

}  // namespace

std::string CosmoFileName(Split split, uint32_t index) {
  return absl::StrFormat("%s/cosmosyn_univ_%c%010d_000%s", SplitName(split),
                         split == Split::kTrain ? 't' : 'v', index, kSampleSuffix);
}

absl::StatusOr<Manifest> GenerateCosmoDataset(const std::string& dir, const CosmoDatasetSpec& spec,
                                              int threads, ProgressCallback progress) {
  RETURN_IF_ERROR(CheckCount("train_samples", spec.train_samples));
  RETURN_IF_ERROR(CheckCount("validation_samples", spec.validation_samples));
  RETURN_IF_ERROR(CosmoSynthesizer::Create(spec.parameters).status());
  Manifest manifest = Describe(spec);
  if (FileExists(JoinPath(dir, kManifestName))) {
    ASSIGN_OR_RETURN(Manifest existing, LoadManifest(dir));
    if (!DescribesSame(existing, manifest))
      return OtherDataset(
          dir, absl::StrCat("the dataset \"", existing.name, "\" with other parameters"));
    if (AllFilesPresent(dir, existing)) return existing;
  } else {
    RETURN_IF_ERROR(BeginGeneration(dir, manifest));
  }
  ASSIGN_OR_RETURN(manifest.files, WriteSamples(dir, spec, threads, std::move(progress)));
  RETURN_IF_ERROR(SyncFileSystem(dir));
  RETURN_IF_ERROR(SaveManifest(dir, manifest));
  RETURN_IF_ERROR(RemoveTree(JoinPath(dir, kUnfinishedName)));
  return manifest;
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
