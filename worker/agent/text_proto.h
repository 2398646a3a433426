// Text protos as files: configuration, run specs.

#ifndef WORKER_AGENT_TEXT_PROTO_H_
#define WORKER_AGENT_TEXT_PROTO_H_

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace assay::agent {

// Fills `message` from the text in `path`. INVALID_ARGUMENT with every problem as
// "path:line:column: text", one a line; an unknown field is one. NOT_FOUND and other codes if the
// file cannot be read.
absl::Status LoadTextProto(const std::string& path, google::protobuf::Message* message);

// The same of `text`, which problems name by its `origin`.
absl::Status ParseTextProto(const std::string& origin, const std::string& text,
                            google::protobuf::Message* message);

// Writes `message` as text, atomically and durably.
absl::Status StoreTextProto(const std::string& path, const google::protobuf::Message& message,
                            int mode = 0644);

}  // namespace assay::agent

#endif  // WORKER_AGENT_TEXT_PROTO_H_
