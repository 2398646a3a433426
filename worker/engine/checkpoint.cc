#include "worker/engine/checkpoint.h"

#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "common/file.h"
#include "common/json_reader.h"
#include "common/json_value.h"
#include "common/sha256.h"
#include "common/status.h"

namespace assay {
namespace {

constexpr absl::string_view kFormat = "assay-checkpoint 1\n";
constexpr size_t kDigestSize = 64;
constexpr int64_t kFileBytesMax = int64_t{64} << 30;  // parameters and optimizer state of one model

std::string HeaderLine(const CheckpointHeader& header,
                       std::span<const CheckpointSection> sections) {
  JsonList list;
  for (const CheckpointSection& section : sections)
    list.emplace_back(JsonObject{{"name", JsonValue(section.name)},
                                 {"bytes", JsonValue(std::ssize(section.bytes))}});
  const JsonObject object = {{"identity", JsonValue(header.identity)},
                             {"epoch", JsonValue(header.position.epoch)},
                             {"step", JsonValue(header.position.step)},
                             {"sections", JsonValue(list)}};
  return absl::StrCat(DumpJson(JsonValue(object)), "\n");
}

absl::Status DataLoss(const std::string& path, absl::string_view problem) {
  return absl::DataLossError(absl::StrCat(path, ": ", problem));
}

// A checkpoint's text, checked against its digest.
struct Parts {
  std::string header;       // the line of JSON with its end
  absl::string_view bytes;  // of all sections
};

absl::StatusOr<Parts> Split(const std::string& path, absl::string_view file) {
  if (!absl::ConsumePrefix(&file, kFormat))
    return DataLoss(path, "not a checkpoint, or one of another version");
  const size_t end = file.find('\n');
  if (end == absl::string_view::npos || file.size() < end + 1 + kDigestSize)
    return DataLoss(path, "truncated");
  const absl::string_view digest = file.substr(file.size() - kDigestSize);
  Sha256 sha;
  sha.Add(kFormat);
  sha.Add(file.substr(0, file.size() - kDigestSize));
  if (sha.HexDigest() != digest) return DataLoss(path, "damaged: its SHA-256 does not match");
  return Parts{std::string(file.substr(0, end + 1)),
               file.substr(end + 1, file.size() - end - 1 - kDigestSize)};
}

absl::StatusOr<CheckpointHeader> ParseHeader(const std::string& path, const std::string& line) {
  const JsonResult parsed = ParseJson(line);
  const JsonValue* identity = parsed.value.Find("identity");
  const JsonValue* epoch = parsed.value.Find("epoch");
  const JsonValue* step = parsed.value.Find("step");
  if (identity == nullptr || identity->AsString() == nullptr || epoch == nullptr ||
      !epoch->AsInt64().has_value() || step == nullptr || !step->AsInt64().has_value())
    return DataLoss(path, "its header is not understood");
  return CheckpointHeader{*identity->AsString(), {*epoch->AsInt64(), *step->AsInt64()}};
}

}  // namespace

absl::Status WriteCheckpoint(const std::string& path, const CheckpointHeader& header,
                             std::span<const CheckpointSection> sections) {
  std::string file = absl::StrCat(kFormat, HeaderLine(header, sections));
  size_t size = file.size() + kDigestSize;
  for (const CheckpointSection& section : sections)
    size += section.bytes.size();
  file.reserve(size);
  for (const CheckpointSection& section : sections)
    file.append(reinterpret_cast<const char*>(section.bytes.data()), section.bytes.size());
  file += Sha256Hex(file);
  return WriteFileAtomic(path, file);
}

absl::StatusOr<TrainingPosition> ReadCheckpoint(const std::string& path, absl::string_view identity,
                                                std::span<const CheckpointSection> sections) {
  ASSIGN_OR_RETURN(const std::string file, ReadFile(path, kFileBytesMax));
  ASSIGN_OR_RETURN(const Parts parts, Split(path, file));
  ASSIGN_OR_RETURN(const CheckpointHeader header, ParseHeader(path, parts.header));
  if (header.identity != identity)
    return absl::FailedPreconditionError(
        absl::StrCat(path,
                     ": the checkpoint is of another run, or its run spec has changed: it "
                     "has ",
                     header.identity, ", this run is ", identity));
  // What the header says of sections is what it would say of these.
  if (HeaderLine(header, sections) != parts.header)
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": the checkpoint is of another model: ", parts.header));
  const char* from = parts.bytes.data();
  for (const CheckpointSection& section : sections) {
    if (!section.bytes.empty()) std::memcpy(section.bytes.data(), from, section.bytes.size());
    from += section.bytes.size();
  }
  return header.position;
}

}  // namespace assay
