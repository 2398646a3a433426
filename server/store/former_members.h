// Members that databases had before workloads (ADR 0157), and where their values are kept now. The
// one place of the coordinator that knows a benchmark's parameter by name. Private to the codec.

#ifndef SERVER_STORE_FORMER_MEMBERS_H_
#define SERVER_STORE_FORMER_MEMBERS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"

#include "server/core/types.h"
#include "server/store/json_archive.h"

namespace assay::store {

// The number in `name`, if it has one; 0: it was not known.
inline int32_t FormerNumber(JsonReader& reader, const char* name) {
  int32_t number = 0;
  if (reader.Has(name)) reader(name, number);
  return number;
}

inline void ReadFormer(JsonReader& reader, core::SubmissionSpec& spec) {
  if (!reader.Has("backend")) return;
  core::TrainerWorkload trainer;
  reader("backend", trainer.backend);
  spec.workload = std::move(trainer);
}

inline void ReadFormer(JsonReader& reader, core::RuleFacts& facts) {
  const int32_t kernel_size = FormerNumber(reader, "kernel_size");
  if (kernel_size == 0) return;
  facts.fixed.emplace("kernel_size", absl::StrCat(kernel_size));
  // Round 0.7 alone had kernels of 2, and it counts epochs from 0.
  facts.fixed.emplace("first_epoch_number", kernel_size == 2 ? "0" : "1");
}

inline void ReadFormer(JsonReader& reader, core::Dataset& dataset) {
  const int32_t cube_edge = FormerNumber(reader, "cube_edge");
  if (cube_edge != 0) dataset.parameters.emplace("cube_edge", absl::StrCat(cube_edge));
}

}  // namespace assay::store

#endif  // SERVER_STORE_FORMER_MEMBERS_H_
