#include "worker/trainer/peer_staging.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <future>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "common/file.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/data/file_copy.h"
#include "worker/data/placing.h"
#include "worker/trainer/failure.h"

namespace assay {
namespace {

constexpr size_t kMessageBytes = size_t{8} << 20;
// Files of one peer that are under way, and written, at once.
constexpr size_t kFilesAtOnce = 4;

// The same if and only if the jobs have the same files of the same known sizes.
std::string DigestOf(const data::StagingJob& job, int rank) {
  Sha256 digest;
  for (const data::FileToStage& file : job.files) {
    digest.Add(absl::StrCat(file.name.size(), " ", file.name, " ", file.bytes, "\n"));
    if (file.bytes < 0) digest.Add(absl::StrCat("unknown to rank ", rank, "\n"));
  }
  return digest.Digest();
}

// Of a copy that is on the device: nothing of it stays in memory.
absl::StatusOr<std::string> ReadBack(const std::string& path, int64_t bytes) {
  ASSIGN_OR_RETURN(std::string content, ReadFile(path, bytes));
  ASSIGN_OR_RETURN(const UniqueFd file, OpenRegularFile(path));
  posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (std::ssize(content) != bytes)
    return absl::DataLossError(
        absl::StrCat(path, " has ", content.size(), " bytes, but ", bytes, " were staged"));
  return content;
}

struct ReceivedFile {
  const data::FileToStage* file = nullptr;
  std::string content;
};

// The exchange of one rank with its peers.
class PeerExchange {
 public:
  PeerExchange(const data::StagingJob& job, const Peers& peers, comm::Collective* comm,
               const std::function<MonoTime()>& deadline)
      : job_(job),
        peers_(peers),
        comm_(comm),
        deadline_(deadline),
        tag_(comm->NextTag()),
        placing_(job),
        buffers_(kFilesAtOnce) {}

  // Of all peers alike.
  absl::StatusOr<bool> IsSameJob() {
    const std::string own = DigestOf(job_, comm_->rank());
    bool is_same = true;
    for (size_t step = 1; step < peers_.ranks.size(); ++step) {
      std::string theirs(own.size(), '\0');
      std::vector<comm::Request> requests;
      StartSend(Next(step), own, &requests);
      StartReceive(Previous(step), theirs, &requests);
      RETURN_IF_ERROR(Wait(requests));
      is_same = is_same && theirs == own;
    }
    return is_same;
  }

  // Of the job's files, in order, every so many-th.
  std::vector<data::FileToStage> FilesToRead() const {
    std::vector<data::FileToStage> files;
    for (size_t i = peers_.own; i < job_.files.size(); i += peers_.ranks.size())
      files.push_back(job_.files[i]);
    return files;
  }

  // Once what FilesToRead says is staged. `arrived` is called with the size of each file.
  absl::Status Run(const std::function<void(int64_t bytes)>& arrived) {
    const size_t turn = peers_.ranks.size() * kFilesAtOnce;
    for (size_t first = 0; first < job_.files.size(); first += turn) {
      std::vector<std::string> own;
      for (const data::FileToStage* file : InTurn(first, peers_.own)) {
        ASSIGN_OR_RETURN(own.emplace_back(),
                         WithExitCode(ReadBack(JoinPath(job_.target_dir, file->name), file->bytes),
                                      ExitCode::kDisk));
      }
      for (size_t step = 1; step < peers_.ranks.size(); ++step) {
        ASSIGN_OR_RETURN(std::vector<ReceivedFile> received, Swap(own, first, step));
        for (const ReceivedFile& one : received)
          arrived(one.file->bytes);
        RETURN_IF_ERROR(Write(std::move(received)));
      }
    }
    RETURN_IF_ERROR(Written());
    return WithExitCode(placing_.Finish(), ExitCode::kDisk);
  }

 private:
  size_t Next(size_t step) const { return (peers_.own + step) % peers_.ranks.size(); }
  size_t Previous(size_t step) const {
    return (peers_.own + peers_.ranks.size() - step) % peers_.ranks.size();
  }

  // The files of one peer in the turn that begins with the job's file `first`.
  std::vector<const data::FileToStage*> InTurn(size_t first, size_t peer) const {
    std::vector<const data::FileToStage*> files;
    for (size_t i = first + peer; i < job_.files.size() && files.size() < kFilesAtOnce;
         i += peers_.ranks.size())
      files.push_back(&job_.files[i]);
    return files;
  }

  void StartSend(size_t peer, absl::string_view bytes, std::vector<comm::Request>* requests) {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kMessageBytes)))
      requests->push_back(
          comm_->StartSend({.peer = peers_.ranks[peer], .tag = tag_},
                           std::as_bytes(std::span(bytes.substr(0, kMessageBytes)))));
  }

  void StartReceive(size_t peer, std::span<char> into, std::vector<comm::Request>* requests) {
    while (!into.empty()) {
      const std::span<char> piece = into.first(std::min(into.size(), kMessageBytes));
      requests->push_back(comm_->StartReceive({.peer = peers_.ranks[peer], .tag = tag_},
                                              std::as_writable_bytes(piece)));
      into = into.subspan(piece.size());
    }
  }

  absl::Status Wait(const std::vector<comm::Request>& requests) {
    for (const comm::Request& request : requests)
      RETURN_IF_ERROR(WithExitCode(comm_->Wait(request, deadline_()), ExitCode::kCommLost));
    return absl::OkStatus();
  }

  // Ours to one peer, while another's come.
  absl::StatusOr<std::vector<ReceivedFile>> Swap(const std::vector<std::string>& own, size_t first,
                                                 size_t step) {
    std::vector<comm::Request> requests;
    for (const std::string& content : own)
      StartSend(Next(step), content, &requests);
    std::vector<ReceivedFile> received;
    received.reserve(kFilesAtOnce);  // what is being received into does not move
    for (const data::FileToStage* file : InTurn(first, Previous(step))) {
      received.push_back({file, std::string(static_cast<size_t>(file->bytes), '\0')});
      StartReceive(Previous(step), received.back().content, &requests);
    }
    RETURN_IF_ERROR(Wait(requests));
    return received;
  }

  // Behind the caller's back, while the next ones come, once the last ones are written.
  absl::Status Write(std::vector<ReceivedFile> received) {
    RETURN_IF_ERROR(Written());
    writing_ = std::async(std::launch::async, [this, received = std::move(received)] {
      return dataset::ForEachIndex(std::ssize(received), static_cast<int>(kFilesAtOnce),
                                   [&](int thread, int64_t i) {
                                     return WriteOne(received[static_cast<size_t>(i)],
                                                     &buffers_[static_cast<size_t>(thread)]);
                                   });
    });
    return absl::OkStatus();
  }

  absl::Status Written() {
    if (!writing_.valid()) return absl::OkStatus();
    const absl::Status status = writing_.get();
    return WithExitCode(status, absl::IsDataLoss(status) ? ExitCode::kBadData : ExitCode::kDisk);
  }

  absl::Status WriteOne(const ReceivedFile& received, data::CopyBuffer* buffer) {
    absl::string_view rest = received.content;
    return placing_.Write(*received.file, absl::StrCat(received.file->name, ", sent by a peer,"),
                          buffer, [&](std::span<char> memory) -> absl::StatusOr<size_t> {
                            const size_t n = std::min(memory.size(), rest.size());
                            std::memcpy(memory.data(), rest.data(), n);
                            rest.remove_prefix(n);
                            return n;
                          });
  }

  const data::StagingJob& job_;
  const Peers& peers_;
  comm::Collective* const comm_;
  const std::function<MonoTime()>& deadline_;
  const comm::Tag tag_;
  data::Placing placing_;
  std::vector<data::CopyBuffer> buffers_;  // of the threads that write
  std::future<absl::Status> writing_;      // the last: what it uses lives longer
};

}  // namespace

Peers PeersOf(const TrainerSpec& spec) {
  if (!spec.run.is_staging_timed()) return {.ranks = {spec.rank}};
  const int on_node = spec.group_ranks_per_node();
  const int group_begin = spec.group() * spec.grid.size();
  Peers peers;
  for (int rank = group_begin + (spec.rank - group_begin) % on_node;
       rank < group_begin + spec.grid.size(); rank += on_node) {
    if (rank == spec.rank) peers.own = peers.ranks.size();
    peers.ranks.push_back(rank);
  }
  return peers;
}

absl::StatusOr<data::Staged> StageWithPeers(const data::StagingJob& job, const Peers& peers,
                                            comm::Collective* comm,
                                            const std::function<MonoTime()>& deadline,
                                            const Clock* clock,
                                            dataset::ProgressCallback progress) {
  const MonoTime begin = clock->Mono();
  PeerExchange exchange(job, peers, comm, deadline);
  ASSIGN_OR_RETURN(const bool is_shared, exchange.IsSameJob());
  data::StagingJob mine = job;
  if (is_shared) mine.files = exchange.FilesToRead();
  dataset::Progress total;
  const auto report = [&](int64_t files, int64_t bytes) {
    total = {.files = files, .files_total = std::ssize(job.files), .bytes = bytes};
    if (progress != nullptr) progress(total);
  };
  absl::StatusOr<data::Staged> staged =
      data::StageFiles(mine, clock, [&](const dataset::Progress& p) { report(p.files, p.bytes); });
  RETURN_IF_ERROR(WithExitCode(
      staged.status(), absl::IsDataLoss(staged.status()) ? ExitCode::kBadData : ExitCode::kDisk));
  if (!is_shared || peers.ranks.size() == 1) return staged;
  RETURN_IF_ERROR(data::MakeFolders(job));
  RETURN_IF_ERROR(
      exchange.Run([&](int64_t bytes) { report(total.files + 1, total.bytes + bytes); }));
  staged->peer_bytes = total.bytes - staged->bytes;
  staged->files = total.files;
  staged->bytes = total.bytes;
  staged->elapsed = clock->Mono() - begin;
  return staged;
}

}  // namespace assay
