#include "worker/engine/backends/cuda/call_text.h"

#include <cxxabi.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <typeinfo>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace assay::cuda {
namespace {

using Extents = std::array<int64_t, 5>;

double Elements(const Extents& extents) {
  double product = 1;
  for (const int64_t extent : extents)
    product *= static_cast<double>(extent);
  return product;
}

const char* NameOf(Precision precision) {
  return std::array{"fp32", "tf32", "bf16"}[static_cast<size_t>(precision)];
}

const char* NameOf(ProductNumbers numbers) {
  return std::array{"fp32", "tf32", "bf16", "bf16_factors"}[static_cast<size_t>(numbers)];
}

// "PoolBackward<Bfloat16>"
std::string NameOf(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  const std::string full = status == 0 ? name.get() : type.name();
  return absl::StrReplaceAll(full, {{"assay::cuda::", ""}, {"assay::", ""}});
}

struct Text {
  std::string operator()(const Kernel& kernel) const {
    return std::visit(
        [](const auto& operation) {
          return absl::StrCat("kernel ", NameOf(typeid(operation)), " count=", operation.count);
        },
        kernel);
  }
  std::string operator()(const ConvolutionCall& c) const {
    return absl::StrCat("convolution ", TextOf(c.plan->problem()), " ", c.plan->Describe());
  }
  std::string operator()(const MatmulCall& c) const {
    return absl::StrCat("product ", NameOf(c.numbers), " m=", c.m, " n=", c.n, " k=", c.k,
                        " ta=", c.transpose_a ? 1 : 0, " tb=", c.transpose_b ? 1 : 0,
                        c.bias == nullptr ? "" : " bias", c.relu ? " relu" : "");
  }
  std::string operator()(const CopyCall& c) const { return absl::StrCat("copy bytes=", c.bytes); }
  std::string operator()(const AverageCall& c) const {
    return absl::StrCat("average count=", c.count, c.in_group ? " in_group" : "",
                        c.is_aside ? " aside" : "");
  }
  std::string operator()(const JoinCall&) const { return "join"; }
  std::string operator()(const ExchangeCall& c) const {
    return absl::StrCat("exchange messages=", c.messages.size());
  }
};

struct Work {
  CallWork operator()(const ConvolutionCall& c) const {
    const ConvolutionProblem& p = c.plan->problem();
    const double taps = Elements(p.w) / static_cast<double>(p.w[0]);  // of an output
    return {.flops = 2 * Elements(p.y) * taps,
            .bytes = static_cast<double>(BytesOf(p.precision)) *
                     (Elements(p.x) + Elements(p.w) + Elements(p.y))};
  }
  CallWork operator()(const MatmulCall& c) const {
    const auto m = static_cast<double>(c.m), n = static_cast<double>(c.n);
    const auto k = static_cast<double>(c.k);
    const bool is_bf16 = c.numbers == ProductNumbers::kBfloat16;
    const double factor = is_bf16 || c.numbers == ProductNumbers::kBfloat16Factors ? 2 : 4;
    return {.flops = 2 * m * n * k, .bytes = factor * (m * k + k * n) + (is_bf16 ? 2 : 4) * m * n};
  }
  CallWork operator()(const CopyCall& c) const {
    return {.bytes = 2 * static_cast<double>(c.bytes)};
  }
  template <typename Other>
  CallWork operator()(const Other&) const {
    return {};
  }
};

}  // namespace

std::string TextOf(const ConvolutionProblem& p) {
  const char* const direction =
      std::array{"forward", "data", "weights"}[static_cast<size_t>(p.direction)];
  const char* const epilogue =
      std::array{"", " affine", " affine_relu", " leaky_pool"}[static_cast<size_t>(p.epilogue)];
  return absl::StrCat(direction, " ", NameOf(p.precision), epilogue, " x=", absl::StrJoin(p.x, ","),
                      " w=", absl::StrJoin(p.w, ","), " stride=", p.stride[2],
                      " dilation=", p.dilation[2]);
}

std::string TextOf(const Call& call) {
  return std::visit(Text(), call);
}

CallWork WorkOf(const Call& call) {
  return std::visit(Work(), call);
}

}  // namespace assay::cuda
