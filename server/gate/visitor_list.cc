#include "server/gate/visitor_list.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace assay::gate {

VisitorList::Limits VisitorList::DefaultLimits() {
  rlimit limit{};
  Limits limits;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
    limits.count = std::clamp<size_t>(limit.rlim_cur / 8, 16, limits.count);
  limits.count_per_address = std::max<size_t>(4, limits.count / 8);
  return limits;
}

void VisitorList::MakeRoom(const std::string& address) {
  const auto count = counts_.find(address);
  const bool is_crowded = count != counts_.end() && count->second >= limits_.count_per_address;
  if (!is_crowded && visitors_.size() < limits_.count) return;
  const auto oldest = std::find_if(visitors_.begin(), visitors_.end(), [&](const Entry& entry) {
    return !is_crowded || entry.address == address;
  });
  // Closing removes the entry, and with it the list's hold on the visitor.
  const std::shared_ptr<Visitor> visitor = oldest->visitor;
  visitor->Close();
}

std::shared_ptr<Visitor> VisitorList::Add(const Visitor::Host* host, Stream stream,
                                          const std::string& address, std::string peer) {
  MakeRoom(address);
  ++counts_[address];
  const auto entry =
      visitors_.insert(visitors_.end(), Entry{.address = address, .visitor = nullptr});
  entry->visitor =
      std::make_shared<Visitor>(host, std::move(stream), std::move(peer), [this, entry] {
        const auto count = counts_.find(entry->address);
        if (--count->second == 0) counts_.erase(count);
        visitors_.erase(entry);
      });
  return entry->visitor;
}

void VisitorList::CloseOldest(size_t count) {
  for (; count > 0 && !visitors_.empty(); --count) {
    const std::shared_ptr<Visitor> visitor = visitors_.front().visitor;
    visitor->Close();
  }
}

}  // namespace assay::gate
