#include "worker/engine/number_check.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "worker/engine/bfloat16.h"

namespace assay {
namespace {

// "conv2" of "conv2/kernel"; empty where a layer has no parameters.
std::string NameOf(Layer* layer) {
  const std::vector<Parameter*> parameters = layer->parameters();
  if (parameters.empty()) return "";
  const std::string& name = parameters.front()->name;
  return name.substr(0, name.rfind('/'));
}

template <typename T>
std::vector<double> Copied(Backend* backend, const Tensor& values) {
  std::vector<T> copy(static_cast<size_t>(values.elements()));
  backend->CopyOut(values, copy.data());
  std::vector<double> numbers(copy.size());
  std::transform(copy.begin(), copy.end(), numbers.begin(),
                 [](T value) { return static_cast<double>(static_cast<float>(value)); });
  return numbers;
}

}  // namespace

void NumberCheck::AfterForward(Layer* layer, const Tensor& y) {
  const std::string name = NameOf(layer);
  if (!name.empty()) last_named_ = name;
  Look("result", y, name.empty() ? absl::StrCat("a layer behind ", last_named_) : name);
}

void NumberCheck::AfterBackward(Layer* layer, const Tensor& dx) {
  const std::string name = NameOf(layer);
  if (!name.empty()) last_named_ = name;
  for (const Parameter* parameter : layer->parameters())
    if (!parameter->is_frozen) Look("gradient", parameter->gradient, parameter->name);
  Look("gradient of the input", dx,
       name.empty() ? absl::StrCat("a layer in front of ", last_named_) : name);
}

std::string NumberCheck::TakeFinding() {
  last_named_ = "the input";
  return std::exchange(finding_, {});
}

void NumberCheck::Look(const std::string& what, const Tensor& values, const std::string& of) {
  const bool is_bf16 = values.dtype == DType::kBfloat16;
  if (!finding_.empty() || values.data == nullptr || (!is_bf16 && values.dtype != DType::kFloat32))
    return;
  const std::vector<double> numbers =
      is_bf16 ? Copied<Bfloat16>(backend_, values) : Copied<float>(backend_, values);
  const auto found = std::find_if(numbers.begin(), numbers.end(),
                                  [](double number) { return !std::isfinite(number); });
  if (found == numbers.end()) return;
  finding_ = absl::StrCat("the ", what, " ", values.shape.ToString(), " of ", of, " has ", *found,
                          " at ", found - numbers.begin());
}

}  // namespace assay
