#include "server/gate/relay_pool.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <thread>
#include <utility>

#include "common/log.h"
#include "server/gate/relay.h"
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace assay::gate {
namespace {

using Context = boost::asio::io_context;

// TLS costs about a core for each GB/s; more threads than this would only compete with the core.
constexpr unsigned kThreadsMax = 4;
// Revoked and expired tokens and certificates lose their connections within this.
constexpr std::chrono::seconds kSweepInterval(1);
// When the pool ends: for what gRPC has sent last.
constexpr std::chrono::seconds kLastBytes(1);
// For the last bytes to a client that sends no more.
constexpr int kDrainSweepsMax = 30;

}  // namespace

class RelayPool::Thread {
 public:
  Thread(const Admit* admit, uint32_t message_bytes_max)
      : admit_(admit), message_bytes_max_(message_bytes_max), timer_(context_) {
    thread_ = std::thread([this] { Run(); });
  }
  ~Thread() {
    boost::asio::post(context_, [this] {
      is_stopping_ = true;
      timer_.expires_after(kLastBytes);
      timer_.async_wait([this](boost::system::error_code) { context_.stop(); });
      StopIfDone();
    });
    thread_.join();
    for (Entry& entry : entries_)
      entry.relay->Close();
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  void Add(Connection connection) {
    // A function that is posted must be copyable.
    auto shared = std::make_shared<Connection>(std::move(connection));
    boost::asio::post(context_, [this, shared] { Begin(std::move(*shared)); });
  }

 private:
  struct Entry {
    std::shared_ptr<Relay> relay;
    auth::Evidence evidence;
    std::string peer;
    int drain_sweeps = 0;
    bool is_over = false;
  };

  void Run() {
    pthread_setname_np(pthread_self(), "relay");
    const auto work = boost::asio::make_work_guard(context_);
    Sweep();
    context_.run();
  }

  void Begin(Connection connection) {
    Entry& entry = entries_.emplace_back();
    entry.evidence = std::move(connection.evidence);
    entry.peer = connection.peer;
    // The list is cleaned by the sweep: the relay may end within its own first turn.
    entry.relay = std::make_shared<Relay>(
        &context_, std::move(connection.client), std::move(connection.server), message_bytes_max_,
        std::move(connection.peer),
        [this, on_over = std::move(connection.on_over), is_over = &entry.is_over]() mutable {
          *is_over = true;
          --live_count_;
          on_over();
          StopIfDone();
        });
    ++live_count_;
    entry.relay->Start();
  }

  void StopIfDone() {
    if (is_stopping_ && live_count_ == 0) context_.stop();
  }

  void Sweep() {
    for (Entry& entry : entries_) {
      if (entry.is_over) continue;
      if (entry.relay->is_draining() && ++entry.drain_sweeps > kDrainSweepsMax) {
        entry.relay->Close();
        continue;
      }
      const absl::Status status = (*admit_)(entry.evidence);
      if (status.ok()) continue;
      LOG(INFO) << "gate: connection ended peer=" << Quoted(entry.peer)
                << " reason=" << Quoted(status.message());
      entry.relay->Close();
    }
    entries_.remove_if([](const Entry& entry) { return entry.is_over; });
    timer_.expires_after(kSweepInterval);
    timer_.async_wait([this](boost::system::error_code error) {
      if (!error && !is_stopping_) Sweep();
    });
  }

  const Admit* const admit_;
  const uint32_t message_bytes_max_;
  Context context_{1};
  boost::asio::steady_timer timer_;
  std::list<Entry> entries_;  // those of thread_ only, as all below
  size_t live_count_ = 0;     // of entries_
  bool is_stopping_ = false;
  std::thread thread_;
};

RelayPool::RelayPool(Admit admit, uint32_t message_bytes_max) : admit_(std::move(admit)) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < std::clamp(cores / 2, 1U, kThreadsMax); ++i)
    threads_.push_back(std::make_unique<Thread>(&admit_, message_bytes_max));
}

RelayPool::~RelayPool() = default;

void RelayPool::Add(Connection connection) {
  threads_[next_++ % threads_.size()]->Add(std::move(connection));
}

}  // namespace assay::gate
