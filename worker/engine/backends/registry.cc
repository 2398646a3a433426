#include "worker/engine/backends/registry.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "common/backend_names.h"
#include "common/log.h"
#include "common/status.h"
#include "worker/engine/backends/cuda/cuda_backend.h"
#include "worker/engine/backends/cuda/plugin.h"
#include "worker/engine/backends/onednn/onednn_backend.h"
#include "worker/engine/backends/reference/reference_backend.h"

namespace assay {
namespace {

using Made = absl::StatusOr<std::unique_ptr<Backend>>;

struct Entry {
  absl::string_view name;
  Made (*make)(absl::string_view name, const BackendOptions& options);
};

template <cuda::Precision precision>
Made MakeCuda(absl::string_view name, const BackendOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<cuda::Device> device, cuda::OpenDevice(options.device));
  LOG(INFO) << "backend=" << name << " device=" << Quoted(device->Describe());
  return cuda::CudaBackend::Make(
      std::move(device),
      {.name = std::string(name),
       .precision = precision,
       .is_call_by_call = options.is_call_by_call,
       .trace_path = options.trace_path,
       .engines = {.is_timed = options.times_engines, .stored = options.stored_engines}});
}

template <OnednnFactors factors>
Made MakeOnednn(absl::string_view, const BackendOptions&) {
  return MakeOnednnBackend(factors);
}

Made MakeReference(absl::string_view, const BackendOptions&) {
  return std::make_unique<ReferenceBackend<float>>();
}

constexpr Entry kBackends[] = {
    {"cuda", MakeCuda<cuda::Precision::kFloat32>},
    {"cuda-tf32", MakeCuda<cuda::Precision::kTf32>},
    {"cuda-bf16", MakeCuda<cuda::Precision::kBfloat16>},
    {"onednn", MakeOnednn<OnednnFactors::kFloat32>},
    {"onednn-bf16", MakeOnednn<OnednnFactors::kBfloat16>},
    {"reference", MakeReference},
};
static_assert(std::equal(std::begin(kBackends), std::end(kBackends), std::begin(kBackendNames),
                         std::end(kBackendNames),
                         [](const Entry& entry, absl::string_view name) {
                           return entry.name == name;
                         }),
              "common/backend_names.h has the same names");

}  // namespace

Made MakeBackend(absl::string_view name, const BackendOptions& options) {
  const bool is_watched =
      options.is_call_by_call || !options.trace_path.empty() || options.fuses_blocks;
  for (const Entry& entry : kBackends) {
    if (entry.name != name) continue;
    if (is_watched && !absl::StartsWith(name, "cuda"))
      return absl::InvalidArgumentError(
          absl::StrCat("backend ", name,
                       " has no calls to trace, to fuse or to keep out of recordings; only "
                       "those on a GPU have: cuda, cuda-tf32, cuda-bf16"));
    return entry.make(name, options);
  }
  return absl::NotFoundError(absl::StrCat("no backend named \"", name,
                                          "\"; there are: ", absl::StrJoin(BackendNames(), ", ")));
}

std::vector<std::string> BackendNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kBackends)
    names.emplace_back(entry.name);
  return names;
}

std::vector<std::string> UsableBackendNames(std::vector<std::string>* refusals) {
  std::vector<std::string> names = BackendNames();
  std::erase_if(names, [refusals](const std::string& name) {
    const absl::Status status = MakeBackend(name).status();
    if (!status.ok() && refusals != nullptr)
      refusals->push_back(absl::StrCat(name, ": ", status.message()));
    return !status.ok();
  });
  return names;
}

}  // namespace assay
