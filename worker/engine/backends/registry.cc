#include "worker/engine/backends/registry.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "worker/engine/backends/onednn/onednn_backend.h"
#include "worker/engine/backends/reference/reference_backend.h"

namespace assay {
namespace {

struct Entry {
  absl::string_view name;
  absl::StatusOr<std::unique_ptr<Backend>> (*make)();
};

absl::StatusOr<std::unique_ptr<Backend>> MakeReference() {
  return std::make_unique<ReferenceBackend<float>>();
}

constexpr Entry kBackends[] = {
    {"onednn", MakeOnednnBackend},
    {"reference", MakeReference},
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(absl::string_view name) {
  for (const Entry& entry : kBackends)
    if (entry.name == name) return entry.make();
  return absl::NotFoundError(absl::StrCat("no backend named \"", name,
                                          "\"; there are: ", absl::StrJoin(BackendNames(), ", ")));
}

std::vector<std::string> BackendNames() {
  std::vector<std::string> names;
  for (const Entry& entry : kBackends)
    names.emplace_back(entry.name);
  return names;
}

}  // namespace assay
