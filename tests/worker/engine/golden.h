// PyTorch's answers (tests/golden/engine, written by make_golden.py) and the inputs they belong to.

#ifndef TESTS_WORKER_ENGINE_GOLDEN_H_
#define TESTS_WORKER_ENGINE_GOLDEN_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/file.h"
#include "common/json_reader.h"
#include "common/json_value.h"
#include "tests/worker/engine/host_tensor.h"

namespace assay {

// The same numbers as `noise` in make_golden.py: in [-1, 1), a hash of (salt, index).
inline double GoldenNoise(uint32_t salt, uint64_t index) {
  uint32_t h = static_cast<uint32_t>(index * 2654435761U + uint64_t{salt} * 40503U + 12345U);
  for (int round = 0; round < 2; ++round) {
    h ^= h >> 15;
    h *= 2246822519U;
    h ^= h >> 13;
  }
  return h / 2147483648.0 - 1;
}

template <typename T>
HostTensor<T> GoldenTensor(uint32_t salt, const Shape& shape, double scale = 1, double offset = 0) {
  HostTensor<T> tensor(shape);
  for (size_t i = 0; i < tensor.values.size(); ++i)
    tensor.values[i] = static_cast<T>(offset + scale * GoldenNoise(salt, i));
  return tensor;
}

// One case of a golden file: an object whose members are read by name.
class GoldenCase {
 public:
  explicit GoldenCase(const JsonObject* object) : object_(object) {}

  const JsonValue& operator[](const std::string& name) const {
    for (const auto& [key, value] : *object_)
      if (key == name) return value;
    ADD_FAILURE() << "no member " << name;
    static const JsonValue* const kNone = new JsonValue;
    return *kNone;
  }
  std::string Text(const std::string& name) const { return *(*this)[name].AsString(); }
  int64_t Integer(const std::string& name) const { return *(*this)[name].AsInt64(); }
  double Number(const std::string& name) const { return *(*this)[name].ToDouble(); }
  std::vector<double> Numbers(const std::string& name) const { return ListOf((*this)[name]); }

  static std::vector<double> ListOf(const JsonValue& value) {
    std::vector<double> numbers;
    for (const JsonValue& element : *value.AsList())
      numbers.push_back(*element.ToDouble());
    return numbers;
  }

 private:
  const JsonObject* object_;
};

// A golden file by its name without folder, as "layers.json". Tests run in the repository's root.
class GoldenFile {
 public:
  explicit GoldenFile(const std::string& name) {
    const absl::StatusOr<std::string> text = ReadFile("tests/golden/engine/" + name);
    EXPECT_TRUE(text.ok()) << text.status();
    parsed_ = ParseJson(text.value_or("{}"));
    EXPECT_EQ(parsed_.error, JsonError::kNone);
  }

  std::vector<GoldenCase> cases() const {
    std::vector<GoldenCase> cases;
    for (const auto& [key, value] : *parsed_.value.AsObject())
      if (key == "cases")
        for (const JsonValue& one : *value.AsList())
          cases.emplace_back(one.AsObject());
    EXPECT_FALSE(cases.empty());
    return cases;
  }

 private:
  JsonResult parsed_;
};

}  // namespace assay

#endif  // TESTS_WORKER_ENGINE_GOLDEN_H_
