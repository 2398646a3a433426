// How many strangers may be at the door, and who must leave for the next one.
//
// Whoever comes gets in: the one who has been there longest leaves instead, of the same address
// first. So somebody who only holds connections open pushes out his own, and a client that takes
// some milliseconds to show its certificate is not kept away.

#ifndef SERVER_GATE_VISITOR_LIST_H_
#define SERVER_GATE_VISITOR_LIST_H_

#include <list>
#include <map>
#include <memory>
#include <string>

#include "server/gate/visitor.h"

namespace assay::gate {

// On one thread.
class VisitorList {
 public:
  struct Limits {
    size_t count = 512;
    size_t count_per_address = 64;
  };
  // An eighth of what RLIMIT_NOFILE allows, at most 512; an eighth of those for an address.
  static Limits DefaultLimits();

  explicit VisitorList(Limits limits) : limits_(limits) {}
  ~VisitorList() { CloseAll(); }
  VisitorList(const VisitorList&) = delete;
  VisitorList& operator=(const VisitorList&) = delete;

  // Makes room for one more from `address` (of IPv6 the first 64 bits), and lets it in.
  std::shared_ptr<Visitor> Add(const Visitor::Host* host, Stream stream, const std::string& address,
                               std::string peer);

  // Sends away the `count` who have been there longest, for descriptors are short.
  void CloseOldest(size_t count);
  void CloseAll() { CloseOldest(visitors_.size()); }

  size_t size() const { return visitors_.size(); }

 private:
  struct Entry {
    std::string address;
    std::shared_ptr<Visitor> visitor;
  };
  void MakeRoom(const std::string& address);

  const Limits limits_;
  std::list<Entry> visitors_;  // oldest first
  std::map<std::string, size_t> counts_;
};

}  // namespace assay::gate

#endif  // SERVER_GATE_VISITOR_LIST_H_
