// What is wrong with a text proto, for people.

#ifndef WORKER_TRAINER_FIRST_ERROR_H_
#define WORKER_TRAINER_FIRST_ERROR_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/tokenizer.h"

namespace assay {

// Collects the first syntax error of a text proto.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat(line + 1, ":", column + 1, ": ", message);
  }
  // "line:column: message", from 1; empty: there was none.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace assay

#endif  // WORKER_TRAINER_FIRST_ERROR_H_
