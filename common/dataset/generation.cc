#include "common/dataset/generation.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::dataset {
namespace {

// Present while a dataset is being generated: says which one.
constexpr absl::string_view kUnfinishedName = "unfinished.json";

bool DescribesSame(const Manifest& a, const Manifest& b) {
  Manifest without_files = a;
  without_files.files = b.files;
  return without_files == b;
}

absl::Status SyncFileSystem(const std::string& dir) {
  const UniqueFd fd(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", dir));
  if (syncfs(fd.get()) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot sync ", dir));
  return absl::OkStatus();
}

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
absl::Status BeginGeneration(const Generation& generation) {
  const std::string& dir = generation.dir;
  const Manifest& description = generation.description;
  const std::string note = JoinPath(dir, kUnfinishedName);
  bool has_samples = false;
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    RETURN_IF_ERROR(MakeDirectories(JoinPath(dir, SplitName(split))));
    ASSIGN_OR_RETURN(const std::vector<std::string> samples,
                     ListSamples(dir, split, generation.suffix));
    has_samples = has_samples || !samples.empty();
  }
  if (!FileExists(note)) {
    if (has_samples) return OtherDataset(dir, "samples of unknown origin");
    return WriteFileAtomic(note, PrintManifest(description));
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(note, kManifestBytesMax));
  const absl::StatusOr<Manifest> begun = ParseManifest(text);
  if (!begun.ok()) return Annotate(begun.status(), note);
  if (!DescribesSame(*begun, description))
    return OtherDataset(dir, "an unfinished dataset with other parameters");
  return absl::OkStatus();
}

// Runs Ensure for every sample.
absl::StatusOr<std::vector<ManifestFile>> WriteSamples(const Generation& generation,
                                                       MakeSampleMaker make,
                                                       ProgressCallback progress) {
  const int64_t train = generation.description.train_samples;
  const int64_t total = train + generation.description.validation_samples;
  std::vector<std::unique_ptr<SampleMaker>> makers;
  for (int thread = 0; thread < std::max(generation.threads, 1); ++thread) {
    ASSIGN_OR_RETURN(makers.emplace_back(), make(thread));
  }
  std::vector<ManifestFile> files(static_cast<size_t>(total));
  ProgressMeter meter(total, std::move(progress));
  RETURN_IF_ERROR(
      ForEachIndex(total, generation.threads, [&](int thread, int64_t i) -> absl::Status {
        const bool is_train = i < train;
        ASSIGN_OR_RETURN(ManifestFile file, makers[static_cast<size_t>(thread)]->Ensure(
                                                is_train ? Split::kTrain : Split::kValidation,
                                                static_cast<uint32_t>(is_train ? i : i - train)));
        meter.AddFile(file.bytes);
        files[static_cast<size_t>(i)] = std::move(file);
        return absl::OkStatus();
      }));
  return files;
}

}  // namespace

absl::Status CheckSampleCount(absl::string_view what, int64_t count) {
  if (count >= 1 && count <= kSamplesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", count, "; it must be in 1..", kSamplesMax));
}

absl::Status WriteSample(const std::string& path, absl::string_view bytes) {
  const std::string temporary = absl::StrCat(path, ".tmp");
  const UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.is_open()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", temporary));
  RETURN_IF_ERROR(Annotate(WriteAll(fd.get(), bytes), temporary));
  if (rename(temporary.c_str(), path.c_str()) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot rename to ", path));
  return absl::OkStatus();
}

ManifestFile EntryOf(const std::string& name, absl::string_view bytes) {
  return {name, static_cast<int64_t>(bytes.size()), Sha256Hex(bytes)};
}

absl::StatusOr<Manifest> Generate(const Generation& generation, MakeSampleMaker make,
                                  FinishGeneration finish, ProgressCallback progress) {
  const std::string& dir = generation.dir;
  Manifest manifest = generation.description;
  if (FileExists(JoinPath(dir, kManifestName))) {
    ASSIGN_OR_RETURN(Manifest existing, LoadManifest(dir));
    if (!DescribesSame(existing, manifest))
      return OtherDataset(
          dir, absl::StrCat("the dataset \"", existing.name, "\" with other parameters"));
    if (AllFilesPresent(dir, existing)) return existing;
  } else {
    RETURN_IF_ERROR(BeginGeneration(generation));
  }
  ASSIGN_OR_RETURN(manifest.files, WriteSamples(generation, make, std::move(progress)));
  ASSIGN_OR_RETURN(const std::vector<ManifestFile> more, finish());
  manifest.files.insert(manifest.files.end(), more.begin(), more.end());
  std::sort(manifest.files.begin(), manifest.files.end(),
            [](const ManifestFile& a, const ManifestFile& b) { return a.path < b.path; });
  RETURN_IF_ERROR(SyncFileSystem(dir));
  RETURN_IF_ERROR(SaveManifest(dir, manifest));
  RETURN_IF_ERROR(RemoveTree(JoinPath(dir, kUnfinishedName)));
  return manifest;
}

}  // namespace assay::dataset
