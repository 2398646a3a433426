// Waits for a descriptor that somebody else owns.

#ifndef SERVER_GATE_READINESS_H_
#define SERVER_GATE_READINESS_H_

#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace assay::gate {

// Used on the thread of its context only; must end before the descriptor does. What waits then is
// told so by an error.
class Readiness {
 public:
  Readiness(boost::asio::io_context* context, int fd) : descriptor_(*context, fd) {}
  ~Readiness() {
    if (descriptor_.is_open()) descriptor_.release();
  }
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  // `then` takes an error_code.
  template <typename Then>
  void WaitRead(Then then) {
    descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read, std::move(then));
  }
  template <typename Then>
  void WaitWrite(Then then) {
    descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_write, std::move(then));
  }

 private:
  boost::asio::posix::stream_descriptor descriptor_;
};

}  // namespace assay::gate

#endif  // SERVER_GATE_READINESS_H_
