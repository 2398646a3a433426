#include "common/dataset/verify.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/dataset/climate_dataset.h"
#include "common/dataset/climate_file.h"
#include "common/dataset/example.h"
#include "common/dataset/layout.h"
#include "common/dataset/manifest.h"
#include "common/dataset/plain_dataset.h"
#include "common/dataset/shards.h"
#include "common/dataset/tfrecord.h"
#include "common/file.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::dataset {
namespace {

constexpr absl::string_view kRestore =
    "copy the file again from a good copy of the dataset; a synthetic one comes back by deleting "
    "the file and generating the dataset again with the same parameters";
constexpr absl::string_view kRemove =
    "remove the file: training would read it as a sample, and it is not part of the dataset";

std::string Describe(const absl::Status& status, const std::string& path) {
  return std::string(absl::StripPrefix(status.message(), absl::StrCat(path, ": ")));
}

// Reads and checks the files of one thread.
class FileChecker {
 public:
  virtual ~FileChecker() = default;
  // Whether the content of a file is what its entry promises; leaves its stored bytes in stored().
  virtual absl::Status CheckContent(const std::string& path, const ManifestFile& file) = 0;
  virtual absl::string_view stored() const = 0;
};

class CosmoChecker : public FileChecker {
 public:
  explicit CosmoChecker(const Manifest& manifest)
      : edge_(manifest.cube_edge), reader_(manifest.compression) {}

  absl::Status CheckContent(const std::string& path, const ManifestFile&) override {
    ASSIGN_OR_RETURN(const absl::string_view payload, reader_.ReadOnly(path));
    ASSIGN_OR_RETURN(const CosmoSampleView sample, ParseCosmoSample(payload, edge_));
    return CheckCounts(sample);
  }
  absl::string_view stored() const override { return reader_.stored(); }

 private:
  const int edge_;
  RecordFile reader_;
};

class ClimateChecker : public FileChecker {
 public:
  // The HDF5 library does not survive every damage, so it gets no file that is known to have some.
  absl::Status CheckContent(const std::string& path, const ManifestFile& file) override {
    bytes_.clear();
    ASSIGN_OR_RETURN(bytes_, ReadFile(path, kMaxFileBytes));
    if (Sha256Hex(bytes_) != file.sha256)
      return absl::DataLossError("its SHA-256 is not the manifest's; not looked at further");
    return CheckClimateFile(file.path, bytes_);
  }
  absl::string_view stored() const override { return bytes_; }

 private:
  std::string bytes_;
};

bool IsClimate(const Manifest& manifest) {
  return manifest.benchmark == "deepcam";
}

std::unique_ptr<FileChecker> MakeChecker(const Manifest& manifest) {
  if (IsClimate(manifest)) return std::make_unique<ClimateChecker>();
  return std::make_unique<CosmoChecker>(manifest);
}

// What is wrong with one file that the manifest lists; nothing if it is as it should be.
std::optional<Problem> CheckFile(const std::string& dir, const ManifestFile& file,
                                 FileChecker* checker) {
  const std::string path = JoinPath(dir, file.path);
  Problem problem{.file = file.path, .remedy = std::string(kRestore)};
  const absl::Status content = checker->CheckContent(path, file);
  problem.offset = ErrorOffset(content);
  if (absl::IsNotFound(content)) {
    problem.problem = "missing";
    return problem;
  }
  const int64_t bytes = static_cast<int64_t>(checker->stored().size());
  const bool is_read = content.ok() || absl::IsDataLoss(content);
  const std::string size_note =
      is_read && bytes != file.bytes
          ? absl::StrCat(bytes, " bytes instead of the manifest's ", file.bytes)
          : "";
  if (!content.ok()) {
    problem.problem =
        absl::StrCat(Describe(content, path), size_note.empty() ? "" : "; ", size_note);
    return problem;
  }
  if (!size_note.empty()) {
    problem.problem = size_note;
    return problem;
  }
  if (Sha256Hex(checker->stored()) == file.sha256) return std::nullopt;
  problem.problem = "well-formed, but its SHA-256 is not the manifest's";
  return problem;
}

std::optional<Problem> CheckPlain(const std::string& dir, const ManifestFile& file) {
  const absl::Status status = CheckPlainFile(dir, file);
  if (status.ok()) return std::nullopt;
  return Problem{.file = file.path,
                 .problem = absl::IsNotFound(status) ? "missing" : std::string(status.message()),
                 .remedy = std::string(kRestore)};
}

// Sample files in the directory that the manifest does not list.
absl::StatusOr<std::vector<Problem>> FindExtraFiles(const std::string& dir,
                                                    const Manifest& manifest) {
  std::vector<Problem> problems;
  const absl::string_view suffix = IsPlain(manifest.benchmark) ? ""
                                   : IsClimate(manifest)       ? kClimateSuffix
                                                               : kSampleSuffix;
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    const absl::StatusOr<std::vector<std::string>> names = ListSamples(dir, split, suffix);
    if (absl::IsNotFound(names.status())) continue;  // its files are reported as missing
    RETURN_IF_ERROR(names.status());
    for (const std::string& name : *names) {
      const bool is_listed = std::binary_search(
          manifest.files.begin(), manifest.files.end(), ManifestFile{.path = name},
          [](const auto& a, const auto& b) { return a.path < b.path; });
      if (!is_listed)
        problems.push_back({name, std::nullopt, "not in the manifest", std::string(kRemove)});
    }
  }
  return problems;
}

// Of archives the first problem: what they lack is known once all are read.
absl::StatusOr<std::vector<Problem>> VerifyShards(const std::string& dir, const Manifest& manifest,
                                                  int threads, ProgressCallback progress) {
  const auto problem_of = [](absl::string_view file, const absl::Status& status) {
    return std::vector<Problem>{{.file = std::string(file),
                                 .problem = std::string(status.message()),
                                 .remedy = "copy the archives again, or pack the dataset anew"}};
  };
  const absl::StatusOr<std::vector<Shard>> found =
      ReadShards(dir, manifest, threads, std::move(progress));
  if (!found.ok()) return problem_of(kShardFolder, found.status());
  const absl::StatusOr<std::vector<Shard>> index = LoadShardIndex(dir, DatasetDigest(manifest));
  if (!index.ok()) return problem_of(kShardIndexName, index.status());
  if (*index == *found) return std::vector<Problem>();
  return problem_of(kShardIndexName,
                    absl::DataLossError(absl::StrCat("it does not say what the archives hold: ",
                                                     "'assay dataset index ", dir, "' makes it")));
}

}  // namespace

absl::StatusOr<std::vector<Problem>> VerifyDataset(const std::string& dir, int threads,
                                                   ProgressCallback progress) {
  ASSIGN_OR_RETURN(const Manifest manifest, LoadManifest(dir));
  ASSIGN_OR_RETURN(const std::vector<std::string> shards, ListShards(dir));
  if (!shards.empty()) return VerifyShards(dir, manifest, threads, std::move(progress));
  ASSIGN_OR_RETURN(std::vector<Problem> problems, FindExtraFiles(dir, manifest));
  std::vector<std::unique_ptr<FileChecker>> checkers;
  for (int i = 0; i < std::max(threads, 1); ++i)
    checkers.push_back(MakeChecker(manifest));
  std::vector<std::optional<Problem>> found(manifest.files.size());
  ProgressMeter meter(static_cast<int64_t>(manifest.files.size()), std::move(progress));
  RETURN_IF_ERROR(ForEachIndex(static_cast<int64_t>(manifest.files.size()), threads,
                               [&](int thread, int64_t i) {
                                 const size_t at = static_cast<size_t>(i);
                                 if (IsPlain(manifest.benchmark)) {
                                   found[at] = CheckPlain(dir, manifest.files[at]);
                                   meter.AddFile(manifest.files[at].bytes);
                                   return absl::OkStatus();
                                 }
                                 FileChecker* checker = checkers[static_cast<size_t>(thread)].get();
                                 found[at] = CheckFile(dir, manifest.files[at], checker);
                                 meter.AddFile(static_cast<int64_t>(checker->stored().size()));
                                 return absl::OkStatus();
                               }));
  for (std::optional<Problem>& problem : found)
    if (problem) problems.push_back(*std::move(problem));
  std::stable_sort(problems.begin(), problems.end(),
                   [](const Problem& a, const Problem& b) { return a.file < b.file; });
  return problems;
}

}  // namespace assay::dataset
