#include "worker/trainer/engines.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"

#include "assay/v1/engine_choices.pb.h"

#include "common/file.h"
#include "common/log.h"
#include "common/status.h"
#include "worker/comm/ring.h"
#include "worker/trainer/first_error.h"

namespace assay {
namespace {

// More than any model has convolutions.
constexpr uint64_t kSharedBytesMax = uint64_t{64} << 20;

v1::EngineChoices ToProto(const EngineChoices& engines) {
  v1::EngineChoices proto;
  proto.set_device(engines.device);
  proto.set_library(engines.library);
  for (const EngineChoice& from : engines.choices) {
    v1::EngineChoice* const choice = proto.add_choices();
    choice->set_convolution(from.convolution);
    choice->set_engine(from.engine);
    choice->set_microseconds(from.microseconds);
    choice->set_candidates_timed(from.candidates_timed);
  }
  return proto;
}

EngineChoices FromProto(const v1::EngineChoices& proto) {
  EngineChoices engines = {.device = proto.device(), .library = proto.library()};
  for (const v1::EngineChoice& choice : proto.choices())
    engines.choices.push_back({.convolution = choice.convolution(),
                               .engine = choice.engine(),
                               .microseconds = choice.microseconds(),
                               .candidates_timed = choice.candidates_timed()});
  return engines;
}

// What is wrong with the last of `seen`; empty: nothing.
std::string ProblemOf(const v1::EngineChoice& choice, std::set<std::string>* seen) {
  if (choice.convolution().empty()) return "choices.convolution is missing";
  if (choice.engine().empty()) return "choices.engine is missing";
  if (!(choice.microseconds() >= 0) || std::isinf(choice.microseconds()))
    return "choices.microseconds must not be negative";
  if (choice.candidates_timed() < 0) return "choices.candidates_timed must not be negative";
  if (!seen->insert(choice.convolution()).second)
    return absl::StrCat("there is another choice for \"", choice.convolution(), "\"");
  return "";
}

}  // namespace

bool ChoosesEngines(absl::string_view backend) {
  return absl::StartsWith(backend, "cuda");
}

std::string EnginesPath(const TrainerSpec& spec) {
  if (!spec.run.engine_choices_output().empty()) return spec.run.engine_choices_output();
  return absl::StrCat(spec.run.log_path(), ".engines");
}

absl::StatusOr<EngineChoices> StoredEngines(const TrainerSpec& spec) {
  if (spec.rank != 0) return EngineChoices();
  if (const std::string own = EnginesPath(spec); spec.is_resumed && FileExists(own))
    return ReadEngines(own);
  const std::string& path = spec.run.engine_choices_path();
  if (path.empty()) return EngineChoices();
  return ReadEngines(path);
}

absl::StatusOr<EngineChoices> ReadEngines(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  v1::EngineChoices proto;
  google::protobuf::TextFormat::Parser parser;
  google::protobuf::TextFormat::ParseInfoTree places;
  FirstError error;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&places);
  if (!parser.ParseFromString(text, &proto))
    return absl::InvalidArgumentError(absl::StrCat(path, ":", error.text()));
  if (proto.device().empty() || proto.library().empty())
    return absl::InvalidArgumentError(absl::StrCat(path, ":1:1: device and library are missing"));
  const auto* const field = v1::EngineChoices::descriptor()->FindFieldByName("choices");
  std::set<std::string> seen;
  for (int i = 0; i < proto.choices_size(); ++i) {
    const std::string problem = ProblemOf(proto.choices(i), &seen);
    if (problem.empty()) continue;
    const auto place = places.GetLocation(field, i);
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", place.line + 1, ":", place.column + 1, ": ", problem));
  }
  return FromProto(proto);
}

absl::Status WriteEngines(const std::string& path, const EngineChoices& engines) {
  std::string text;
  CHECK(google::protobuf::TextFormat::PrintToString(ToProto(engines), &text)) << path;
  return WriteFileAtomic(path, text);
}

absl::StatusOr<EngineChoices> ShareEngines(const EngineChoices& engines, comm::Collective* comm,
                                           MonoTime deadline) {
  std::string bytes = ToProto(engines).SerializeAsString();
  uint64_t size = bytes.size();
  RETURN_IF_ERROR(
      comm::BroadcastFromZero(comm, std::as_writable_bytes(std::span(&size, 1)), deadline));
  if (size > kSharedBytesMax)
    return absl::InternalError(absl::StrCat("rank 0 sends ", size, " bytes of engines"));
  bytes.resize(size);
  if (size > 0)
    RETURN_IF_ERROR(
        comm::BroadcastFromZero(comm, std::as_writable_bytes(std::span(bytes)), deadline));
  v1::EngineChoices proto;
  if (!proto.ParseFromString(bytes))
    return absl::InternalError("rank 0's engines are no assay.v1.EngineChoices");
  return FromProto(proto);
}

}  // namespace assay
