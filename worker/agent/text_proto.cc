#include "worker/agent/text_proto.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

#include "common/file.h"
#include "common/status.h"

namespace assay::agent {
namespace {

class Problems final : public google::protobuf::io::ErrorCollector {
 public:
  explicit Problems(std::string path) : path_(std::move(path)) {}
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    list_.push_back(absl::StrCat(path_, ":", line + 1, ":", column + 1, ": ", message));
  }
  absl::Status ToStatus() const { return absl::InvalidArgumentError(absl::StrJoin(list_, "\n")); }

 private:
  const std::string path_;
  std::vector<std::string> list_;
};

}  // namespace

absl::Status LoadTextProto(const std::string& path, google::protobuf::Message* message) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return ParseTextProto(path, text, message);
}

absl::Status ParseTextProto(const std::string& origin, const std::string& text,
                            google::protobuf::Message* message) {
  Problems problems(origin);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&problems);
  return parser.ParseFromString(text, message) ? absl::OkStatus() : problems.ToStatus();
}

absl::Status StoreTextProto(const std::string& path, const google::protobuf::Message& message,
                            int mode) {
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(message, &text))
    return absl::InternalError(absl::StrCat("cannot print ", path));
  return WriteFileAtomic(path, text, mode);
}

}  // namespace assay::agent
