#include "common/dataset/plain_dataset.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "common/dataset/generation.h"
#include "common/dataset/layout.h"
#include "common/file.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::dataset {
namespace {

absl::StatusOr<ManifestFile> EntryOfFile(const std::string& dir, const std::string& name) {
  const std::string path = JoinPath(dir, name);
  ManifestFile entry{.path = name};
  ASSIGN_OR_RETURN(entry.bytes, FileSize(path));
  ASSIGN_OR_RETURN(entry.sha256, Sha256HexOfFile(path));
  return entry;
}

// The files of a split; the folder holds nothing else.
absl::StatusOr<std::vector<std::string>> FilesOf(const std::string& dir, Split split) {
  ASSIGN_OR_RETURN(std::vector<std::string> names, ListSamples(dir, split, /*suffix=*/""));
  if (names.empty())
    return absl::FailedPreconditionError(
        absl::StrCat(JoinPath(dir, SplitName(split)), " holds no files: nothing to import"));
  for (const std::string& name : names) {
    std::error_code error;
    if (std::filesystem::is_regular_file(JoinPath(dir, name), error)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        JoinPath(dir, name), " is no file: samples lie in train and validation themselves"));
  }
  return names;
}

// What lies beside the splits, such as a vocabulary.
absl::StatusOr<std::vector<std::string>> FilesBeside(const std::string& dir) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(dir));
  std::vector<std::string> files;
  for (const std::string& name : names) {
    std::error_code error;
    if (!absl::StartsWith(name, ".") && name != kManifestName &&
        std::filesystem::is_regular_file(JoinPath(dir, name), error))
      files.push_back(name);
  }
  return files;
}

absl::Status TakeSampleCounts(const PlainImport& import, size_t train, size_t validation,
                              Manifest* manifest) {
  if (import.train_samples.has_value() != import.validation_samples.has_value())
    return absl::InvalidArgumentError(
        "give the numbers of samples of both splits, or of neither if each file is a sample");
  manifest->is_packed = import.train_samples.has_value();
  manifest->train_samples = import.train_samples.value_or(static_cast<int64_t>(train));
  manifest->validation_samples =
      import.validation_samples.value_or(static_cast<int64_t>(validation));
  RETURN_IF_ERROR(CheckSampleCount("train_samples", manifest->train_samples));
  return CheckSampleCount("validation_samples", manifest->validation_samples);
}

}  // namespace

bool IsPlain(absl::string_view benchmark) {
  return benchmark != "cosmoflow" && benchmark != "deepcam";
}

absl::StatusOr<Manifest> ImportPlainDataset(const std::string& dir, const PlainImport& import,
                                            int threads, ProgressCallback progress) {
  if (!IsPlain(import.benchmark))
    return absl::InvalidArgumentError(absl::StrCat(
        "samples of ", import.benchmark, " have a format of their own: `assay dataset generate`"));
  if (FileExists(JoinPath(dir, kManifestName)))
    return absl::AlreadyExistsError(
        absl::StrCat(dir, " has a manifest already: verify it, or remove it to import anew"));
  ASSIGN_OR_RETURN(std::vector<std::string> names, FilesOf(dir, Split::kTrain));
  ASSIGN_OR_RETURN(const std::vector<std::string> validation, FilesOf(dir, Split::kValidation));
  ASSIGN_OR_RETURN(const std::vector<std::string> beside, FilesBeside(dir));
  Manifest manifest{.name = import.name, .benchmark = import.benchmark, .generator = "imported"};
  RETURN_IF_ERROR(TakeSampleCounts(import, names.size(), validation.size(), &manifest));
  names.insert(names.end(), validation.begin(), validation.end());
  names.insert(names.end(), beside.begin(), beside.end());
  std::sort(names.begin(), names.end());
  manifest.files.resize(names.size());
  ProgressMeter meter(static_cast<int64_t>(names.size()), std::move(progress));
  RETURN_IF_ERROR(ForEachIndex(static_cast<int64_t>(names.size()), threads,
                               [&](int, int64_t i) -> absl::Status {
                                 const auto at = static_cast<size_t>(i);
                                 ASSIGN_OR_RETURN(manifest.files[at], EntryOfFile(dir, names[at]));
                                 meter.AddFile(manifest.files[at].bytes);
                                 return absl::OkStatus();
                               }));
  RETURN_IF_ERROR(SaveManifest(dir, manifest));
  return manifest;
}

absl::Status CheckPlainFile(const std::string& dir, const ManifestFile& file) {
  ASSIGN_OR_RETURN(const ManifestFile found, EntryOfFile(dir, file.path));
  if (found.bytes != file.bytes)
    return absl::DataLossError(
        absl::StrCat(found.bytes, " bytes instead of the manifest's ", file.bytes));
  if (found.sha256 != file.sha256) return absl::DataLossError("its SHA-256 is not the manifest's");
  return absl::OkStatus();
}

}  // namespace assay::dataset
