#include "worker/agent/connection_keeper.h"

#include <chrono>
#include <utility>

namespace assay::agent {
namespace {

// One wake-up a second beside the trainers while the coordinator is connected.
constexpr std::chrono::seconds kSlice{1};

}  // namespace

ConnectionKeeper::ConnectionKeeper(std::shared_ptr<grpc::Channel> channel)
    : channel_(std::move(channel)), thread_([this] { Loop(); }) {}

ConnectionKeeper::~ConnectionKeeper() {
  is_stopping_ = true;
  thread_.join();
}

void ConnectionKeeper::Loop() {
  while (!is_stopping_) {
    const grpc_connectivity_state state = channel_->GetState(/*try_to_connect=*/true);
    channel_->WaitForStateChange(state, std::chrono::system_clock::now() + kSlice);
  }
}

}  // namespace assay::agent
