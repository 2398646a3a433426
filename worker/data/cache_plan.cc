#include "worker/data/cache_plan.h"

namespace assay::data {

CachePlace CachePlan::Next(uint32_t sample) {
  const auto found = slot_of_.find(sample);
  if (found != slot_of_.end()) return {.slot = found->second, .is_there = true};
  const auto taken = static_cast<int64_t>(slot_of_.size());
  if (taken >= slots_) return {};
  slot_of_[sample] = first_slot_ + taken;
  return {.slot = first_slot_ + taken};
}

}  // namespace assay::data
