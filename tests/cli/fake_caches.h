// What the fake coordinator's nodes have in their caches.

#ifndef TESTS_CLI_FAKE_CACHES_H_
#define TESTS_CLI_FAKE_CACHES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "assay/v1/resources.pb.h"

namespace assay::testing {

// The first has half of cosmo32, and the rest to do when its run has ended; the second has all.
inline void AddCaches(int64_t noon, std::vector<v1::Worker>* workers) {
  int64_t number = 40;
  for (v1::Worker& worker : *workers) {
    const bool is_first = number == 40;
    worker.mutable_capabilities()->set_cache_bytes(1'000'000'000'000);
    v1::CachedDataset* const cached = worker.mutable_cache()->add_datasets();
    cached->set_digest(std::string(64, 'b'));
    cached->set_name("cosmo32");
    cached->set_files(is_first ? 1152 : 2304);
    cached->set_files_total(2304);
    cached->set_bytes(is_first ? 302'000'000 : 604'000'000);
    cached->set_bytes_total(604'000'000);
    cached->set_is_pinned(!is_first);
    v1::CacheOrder* const order = worker.add_cache_orders();
    order->set_number(number++);
    order->set_action(v1::CacheOrder::STAGE);
    order->set_dataset("cosmo32");
    order->set_path("/data/cosmo32");
    order->set_digest(std::string(64, 'b'));
    order->set_state(is_first ? v1::CacheOrder::PENDING : v1::CacheOrder::DONE);
    order->mutable_create_time()->set_seconds(noon);
    if (!is_first) order->mutable_end_time()->set_seconds(noon + 60);
  }
}

}  // namespace assay::testing

#endif  // TESTS_CLI_FAKE_CACHES_H_
