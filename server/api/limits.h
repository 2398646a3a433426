// How large anything in a request may be: one table with a row for each field of each message that
// a caller can send, checked before anything else is done with the message.
//
// A field without a row is refused when it is set, and tests/server/api/limits_test.cc fails for
// it: a new field cannot be forgotten.

#ifndef SERVER_API_LIMITS_H_
#define SERVER_API_LIMITS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace assay::api {

// The largest message that is taken at all. A batch of events is the largest that is sent: 1 MiB.
inline constexpr int kMessageBytesMax = 1280 << 10;
// Of files that come in pieces.
inline constexpr size_t kPieceBytesMax = 64 << 10;

enum class LimitKind {
  kName,   // of a string: at most `max` bytes, no control characters
  kBytes,  // of a string or bytes: at most `max` bytes, whatever they are
  kCount,  // of a repeated field or map: at most `max` items
  kRange,  // of a number, or of the seconds of a Timestamp or Duration: `min` to `max`
  kTotal,  // of a message type: at most `max` bytes as it is sent
};

// A repeated string has two rows. Keys and values of a map are fields of its entry.
struct Limit {
  LimitKind kind;
  const char* field;  // SubmissionSpec.system, below assay.v1; for kTotal the message
  int64_t min;
  int64_t max;
};

std::span<const Limit> LimitTable();

// OK if every field of `request`, which a method of the API takes, is within its limit.
// INVALID_ARGUMENT names the field, how large it is and the limit. Thread-safe.
absl::Status CheckLimits(const google::protobuf::Message& request);

// Fields of the API's requests without a row, and rows of fields that are in no request. For tests.
std::vector<std::string> FieldsWithoutLimit();
std::vector<std::string> LimitsWithoutField();

}  // namespace assay::api

#endif  // SERVER_API_LIMITS_H_
