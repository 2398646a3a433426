#include "common/dataset/manifest.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

#include "common/dataset/layout.h"
#include "common/file.h"
#include "common/json_document.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay::dataset {
namespace {

using Json = nlohmann::json;

constexpr char kFormat[] = "assay-dataset-1";
constexpr int64_t kFileBytesMax = int64_t{1} << 50;

std::string Quote(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Reads members of a JSON object; the first thing that is wrong stays in status().
class ObjectReader {
 public:
  explicit ObjectReader(const Json& object) : object_(object) {}

  std::string Text(const char* key) {
    const Json* member = Member(key);
    if (member == nullptr) return "";
    if (!member->is_string()) return Fail(key, "is not a text"), "";
    return member->get<std::string>();
  }

  int64_t Count(const char* key, int64_t max) {
    const Json* member = Member(key);
    if (member == nullptr) return 0;
    if (!member->is_number_unsigned() || member->get<uint64_t>() > static_cast<uint64_t>(max))
      return Fail(key, absl::StrCat("is not a count from 0 to ", max)), 0;
    return static_cast<int64_t>(member->get<uint64_t>());
  }

  // False if there is no such member.
  bool IsTrue(const char* key) {
    const auto found = object_.find(key);
    if (found == object_.end()) return false;
    if (!found->is_boolean()) return Fail(key, "is not true or false"), false;
    return found->get<bool>();
  }

  const Json* Member(const char* key) {
    const auto found = object_.find(key);
    if (found != object_.end()) return &*found;
    Fail(key, "is missing");
    return nullptr;
  }

  void Fail(const char* key, absl::string_view problem) {
    if (status_.ok())
      status_ = absl::DataLossError(absl::StrCat("manifest: \"", key, "\" ", problem));
  }

  const absl::Status& status() const { return status_; }

 private:
  const Json& object_;
  absl::Status status_;
};

// A path that stays below the directory it starts from.
bool IsRelativePath(const std::string& path) {
  for (const absl::string_view part : absl::StrSplit(path, '/'))
    if (part.empty() || part == "." || part == "..") return false;
  return true;
}

absl::StatusOr<ManifestFile> ParseFile(const Json& json) {
  constexpr size_t kSha256Digits = 64;
  if (!json.is_object()) return absl::DataLossError("manifest: a file is not an object");
  ObjectReader reader(json);
  ManifestFile file{.path = reader.Text("path"),
                    .bytes = reader.Count("bytes", kFileBytesMax),
                    .sha256 = reader.Text("sha256")};
  RETURN_IF_ERROR(reader.status());
  if (!IsRelativePath(file.path))
    return absl::DataLossError(
        absl::StrCat("manifest: path \"", file.path, "\" leaves the dataset's directory"));
  if (file.sha256.size() != kSha256Digits)
    return absl::DataLossError(
        absl::StrCat("manifest: sha256 of ", file.path, " is not 64 digits"));
  return file;
}

absl::Status ParseFiles(const Json& list, Manifest* manifest) {
  if (!list.is_array()) return absl::DataLossError("manifest: \"files\" is not a list");
  for (const Json& json : list) {
    ASSIGN_OR_RETURN(ManifestFile file, ParseFile(json));
    if (!manifest->files.empty() && manifest->files.back().path >= file.path)
      return absl::DataLossError(
          absl::StrCat("manifest: ", file.path, " stands twice or is not in order"));
    manifest->files.push_back(std::move(file));
  }
  return absl::OkStatus();
}

// A manifest without files describes a dataset that is being generated.
absl::Status CheckSampleCounts(const Manifest& manifest) {
  if (manifest.files.empty() || manifest.is_packed) return absl::OkStatus();
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    const std::string folder = absl::StrCat(SplitName(split), "/");
    const auto listed = std::count_if(
        manifest.files.begin(), manifest.files.end(),
        [&folder](const ManifestFile& file) { return absl::StartsWith(file.path, folder); });
    const int64_t told =
        split == Split::kTrain ? manifest.train_samples : manifest.validation_samples;
    if (told != listed)
      return absl::DataLossError(absl::StrCat("manifest: \"", SplitName(split), "_samples\" is ",
                                              told, ", but ", listed, " files are listed"));
  }
  return absl::OkStatus();
}

absl::Status ParseParameters(const Json& object, Manifest* manifest) {
  if (!object.is_object()) return absl::DataLossError("manifest: \"parameters\" is not an object");
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string())
      return absl::DataLossError(absl::StrCat("manifest: parameter \"", key, "\" is not a text"));
    manifest->parameters[key] = value.get<std::string>();
  }
  return absl::OkStatus();
}

}  // namespace

std::string DatasetDigest(const Manifest& manifest) {
  Sha256 hash;
  for (const ManifestFile& file : manifest.files)
    hash.Add(absl::StrCat(file.sha256, " ", file.bytes, " ", file.path, "\n"));
  return hash.HexDigest();
}

std::map<std::string, int64_t> SampleParameters(const Manifest& manifest) {
  std::map<std::string, int64_t> parameters;
  if (manifest.cube_edge > 0) parameters["cube_edge"] = manifest.cube_edge;
  return parameters;
}

int64_t TotalBytes(const Manifest& manifest) {
  int64_t bytes = 0;
  for (const ManifestFile& file : manifest.files)
    bytes += file.bytes;
  return bytes;
}

std::string PrintManifest(const Manifest& manifest) {
  std::string out = absl::StrCat("{\n  \"format\": \"", kFormat, "\",\n");
  absl::StrAppend(&out, "  \"name\": ", Quote(manifest.name), ",\n");
  absl::StrAppend(&out, "  \"benchmark\": ", Quote(manifest.benchmark), ",\n");
  absl::StrAppend(&out, "  \"generator\": ", Quote(manifest.generator), ",\n  \"parameters\": {");
  absl::string_view separator = "\n";
  for (const auto& [key, value] : manifest.parameters) {
    absl::StrAppend(&out, separator, "    ", Quote(key), ": ", Quote(value));
    separator = ",\n";
  }
  absl::StrAppend(&out, "\n  },\n  \"cube_edge\": ", manifest.cube_edge, ",\n");
  absl::StrAppend(&out, "  \"compression\": \"", CompressionName(manifest.compression), "\",\n");
  if (manifest.is_packed) absl::StrAppend(&out, "  \"packed\": true,\n");
  absl::StrAppend(&out, "  \"train_samples\": ", manifest.train_samples, ",\n");
  absl::StrAppend(&out, "  \"validation_samples\": ", manifest.validation_samples, ",\n");
  absl::StrAppend(&out, "  \"total_bytes\": ", TotalBytes(manifest), ",\n");
  absl::StrAppend(&out, "  \"digest\": \"", DatasetDigest(manifest), "\",\n  \"files\": [");
  separator = "\n";
  for (const ManifestFile& file : manifest.files) {
    absl::StrAppend(&out, separator, "    {\"path\": ", Quote(file.path),
                    ", \"bytes\": ", file.bytes, ", \"sha256\": ", Quote(file.sha256), "}");
    separator = ",\n";
  }
  absl::StrAppend(&out, "\n  ]\n}\n");
  return out;
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view text) {
  const Json json = ParseJsonDocument<Json>(text);
  if (!json.is_object()) return absl::DataLossError("manifest: not a JSON object");
  ObjectReader reader(json);
  if (reader.Text("format") != kFormat)
    return absl::DataLossError(absl::StrCat("manifest: \"format\" is not \"", kFormat, "\""));
  Manifest manifest{.name = reader.Text("name"),
                    .benchmark = reader.Text("benchmark"),
                    .generator = reader.Text("generator"),
                    .cube_edge = static_cast<int>(reader.Count("cube_edge", kCubeEdgeMax)),
                    .train_samples = reader.Count("train_samples", kSamplesMax),
                    .validation_samples = reader.Count("validation_samples", kSamplesMax)};
  manifest.is_packed = reader.IsTrue("packed");
  const std::string compression = reader.Text("compression");
  const std::string digest = reader.Text("digest");
  const Json* parameters = reader.Member("parameters");
  const Json* files = reader.Member("files");
  RETURN_IF_ERROR(reader.status());
  const absl::StatusOr<Compression> parsed = ParseCompression(compression);
  if (!parsed.ok())
    return absl::DataLossError(absl::StrCat("manifest: ", parsed.status().message()));
  manifest.compression = *parsed;
  RETURN_IF_ERROR(ParseParameters(*parameters, &manifest));
  RETURN_IF_ERROR(ParseFiles(*files, &manifest));
  RETURN_IF_ERROR(CheckSampleCounts(manifest));
  if (digest != DatasetDigest(manifest))
    return absl::DataLossError("manifest: the digest does not match the files listed");
  return manifest;
}

absl::StatusOr<Manifest> LoadManifest(const std::string& dir) {
  const std::string path = JoinPath(dir, kManifestName);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kManifestBytesMax));
  absl::StatusOr<Manifest> manifest = ParseManifest(text);
  if (!manifest.ok()) return Annotate(manifest.status(), path);
  return manifest;
}

absl::Status SaveManifest(const std::string& dir, const Manifest& manifest) {
  return WriteFileAtomic(JoinPath(dir, kManifestName), PrintManifest(manifest));
}

}  // namespace assay::dataset
