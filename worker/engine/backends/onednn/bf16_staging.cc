#include "worker/engine/backends/onednn/bf16_staging.h"

#include <algorithm>

#include "worker/engine/backends/onednn/avx512_bf16.h"

namespace assay {
namespace {

constexpr int64_t kBlock = 1 << 14;  // numbers that one thread takes at a time

}  // namespace

void Bf16Staging::Reserve(size_t place, int64_t count) {
  Place& reserved = places_[place];
  if (reserved.count >= count) return;
  reserved = {};  // before the larger one
  const dnnl::memory::desc desc({count}, dnnl::memory::data_type::bf16,
                                dnnl::memory::format_tag::a);
  reserved = {dnnl::memory(desc, engine_), count};
}

Bfloat16* Bf16Staging::Rounded(size_t place, std::span<const float> from) {
  Reserve(place, std::ssize(from));
  auto* const to = static_cast<Bfloat16*>(places_[place].memory.get_data_handle());
  const int64_t size = std::ssize(from);
#pragma omp parallel for schedule(static)
  for (int64_t start = 0; start < size; start += kBlock)
    CastToBf16(from.subspan(static_cast<size_t>(start),
                            static_cast<size_t>(std::min(kBlock, size - start))),
               to + start);
  return to;
}

}  // namespace assay
