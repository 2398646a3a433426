// The values of a run spec, read by their key in the log; each read checks the type.

#ifndef WORKER_TRAINER_HYPERPARAMETERS_H_
#define WORKER_TRAINER_HYPERPARAMETERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "assay/v1/run_spec.pb.h"

#include "common/json_value.h"

namespace assay {

// INVALID_ARGUMENT as "field: problem".
absl::Status InvalidField(absl::string_view field, absl::string_view problem);

// Immutable. A key has the value that the submission gave it as a hyperparameter, else what is
// known of the dataset's samples. Reads of a key that neither has answer `otherwise`; reads of one
// that holds another kind of value are INVALID_ARGUMENT and name it.
class Hyperparameters {
 public:
  // INVALID_ARGUMENT: a value is not JSON.
  static absl::StatusOr<Hyperparameters> Parse(const v1::RunSpec& run);

  // Finite.
  absl::StatusOr<double> Number(const std::string& key, double otherwise) const;
  absl::StatusOr<int64_t> Integer(const std::string& key, int64_t otherwise) const;
  absl::StatusOr<std::string> Text(const std::string& key, const std::string& otherwise) const;
  // A list of numbers; a single number is a list of one, no number an empty list.
  absl::StatusOr<std::vector<double>> Numbers(const std::string& key) const;

  // As it is; null if the key was not given.
  const JsonValue* Find(const std::string& key) const;

  // What the round fixes, whatever else is given.
  absl::StatusOr<int64_t> FixedInteger(const std::string& key, int64_t otherwise) const;

  const std::map<std::string, JsonValue>& values() const { return values_; }

 private:
  std::map<std::string, JsonValue> fixed_;
  std::map<std::string, JsonValue> values_;
};

}  // namespace assay

#endif  // WORKER_TRAINER_HYPERPARAMETERS_H_
