// Strangers without any identity who wish the coordinator ill: what they do to its TCP port, many
// at a time, for as long as the object lives.

#ifndef TESTS_ATTACK_HOSTILE_H_
#define TESTS_ATTACK_HOSTILE_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/file.h"
#include "common/mutex.h"

namespace assay::testing {

inline constexpr int64_t kMebibyte = 1 << 20;
// What a coordinator may grow by, whoever attacks.
inline constexpr int64_t kGrowthMax = 200 * kMebibyte;

// What one of them does with each of its connections.
enum class Malice {
  // TLS for HTTP/2 without a certificate, then a header of 1 GiB announced and sent piece by piece
  // in CONTINUATION frames: quadratic work in some parsers.
  kEndlessHeader,
  kHalfHandshake,    // the first half of a TLS greeting, then silence
  kSlowRequest,      // TLS for HTTP/1.1, then a request that goes on for ever, byte by byte
  kWrongToken,       // TLS for HTTP/1.1, then whole requests with a token that is none
  kDisguise,         // TLS for HTTP/1.1, then the endless header of HTTP/2
  kGarbage,          // bytes that mean nothing, without TLS
  kConnectAndClose,  // nothing at all, and again
};

// A bell that ends waiting. Thread-safe.
class Bell {
 public:
  void Ring();
  // True as soon as it has rung; false after `duration`.
  bool Wait(absl::Duration duration);

 private:
  Mutex mutex_;
  CondVar changed_;
  bool has_rung_ ABSL_GUARDED_BY(mutex_) = false;
};

// Threads of strangers, each with one connection at a time. They are polite to this machine alone:
// their priority is low, and each does something at most fifty times a second.
class Crowd {
 public:
  struct Tally {
    int64_t connections = 0;  // that were made
    int64_t turned_away = 0;  // that were not, or ended before the stranger wished it
    int64_t sent_bytes = 0;
  };

  // `address`: host:port, the host in digits. `count` strangers, the kinds of malice in turn.
  Crowd(const std::string& address, int count);
  // As Leave.
  ~Crowd();

  // Closes all connections. Idempotent.
  Tally Leave();

 private:
  void Run(Malice malice);

  const std::string address_;
  Bell bell_;
  std::atomic<int64_t> connections_ = 0;
  std::atomic<int64_t> turned_away_ = 0;
  std::atomic<int64_t> sent_bytes_ = 0;
  std::vector<std::thread> threads_;
};

// Up to `count` connections to `address` that nothing is ever sent over; fewer if no more are
// taken.
std::vector<UniqueFd> ConnectSilently(const std::string& address, int count);

// The same to the Unix socket at `path`.
std::vector<UniqueFd> ConnectSilentlyUnix(const std::string& path, int count);

}  // namespace assay::testing

#endif  // TESTS_ATTACK_HOSTILE_H_
