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

// What each peer reads of a job, which they all know.
using Parts = std::vector<std::vector<data::FileToStage>>;

// In order, every so many-th.
Parts DealInTurn(const std::vector<data::FileToStage>& files, size_t peers) {
  Parts parts(peers);
  for (size_t i = 0; i < files.size(); ++i)
    parts[i % peers].push_back(files[i]);
  return parts;
}

// The same if and only if the parts have the same files of the same known sizes.
std::string DigestOf(const Parts& parts, int rank) {
  Sha256 digest;
  for (const std::vector<data::FileToStage>& part : parts) {
    digest.Add(absl::StrCat(part.size(), " files\n"));
    for (const data::FileToStage& file : part) {
      digest.Add(absl::StrCat(file.name.size(), " ", file.name, " ", file.bytes, "\n"));
      if (file.bytes < 0) digest.Add(absl::StrCat("unknown to rank ", rank, "\n"));
    }
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
  PeerExchange(const data::StagingJob& job, Parts parts, const Peers& peers, comm::Collective* comm,
               const std::function<MonoTime()>& deadline)
      : job_(job),
        parts_(std::move(parts)),
        peers_(peers),
        comm_(comm),
        deadline_(deadline),
        tag_(comm->NextTag()),
        placing_(job),
        buffers_(kFilesAtOnce) {}

  // Of all peers alike.
  absl::StatusOr<bool> IsSameJob() {
    const std::string own = DigestOf(parts_, comm_->rank());
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

  const std::vector<data::FileToStage>& files_to_read() const { return parts_[peers_.own]; }

  // Once the files to read are staged. `arrived` is called with the size of each file.
  absl::Status Run(const std::function<void(int64_t bytes)>& arrived) {
    size_t most = 0;
    for (const std::vector<data::FileToStage>& part : parts_)
      most = std::max(most, part.size());
    for (size_t first = 0; first < most; first += kFilesAtOnce) {
      std::vector<std::string> own;
      for (const data::FileToStage& file : InTurn(first, peers_.own)) {
        ASSIGN_OR_RETURN(own.emplace_back(),
                         WithExitCode(ReadBack(JoinPath(job_.target_dir, file.name), file.bytes),
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

  // The files of one peer in the turn that begins with its file `first`.
  std::span<const data::FileToStage> InTurn(size_t first, size_t peer) const {
    const std::span<const data::FileToStage> part = parts_[peer];
    if (first >= part.size()) return {};
    return part.subspan(first, std::min(part.size() - first, kFilesAtOnce));
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
    for (const data::FileToStage& file : InTurn(first, Previous(step))) {
      received.push_back({&file, std::string(static_cast<size_t>(file.bytes), '\0')});
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
  const Parts parts_;
  const Peers& peers_;
  comm::Collective* const comm_;
  const std::function<MonoTime()>& deadline_;
  const comm::Tag tag_;
  data::Placing placing_;
  std::vector<data::CopyBuffer> buffers_;  // of the threads that write
  std::future<absl::Status> writing_;      // the last: what it uses lives longer
};

// Reads files from shared storage into a job's target.
using ReadPart =
    std::function<absl::StatusOr<data::Staged>(data::StagingJob part, dataset::ProgressCallback)>;

// Reads the job, or, with an exchange, this rank's part of it, and gets the rest from its peers.
absl::StatusOr<data::Staged> Stage(const data::StagingJob& job, PeerExchange* exchange,
                                   const ReadPart& read, const Clock* clock,
                                   dataset::ProgressCallback progress) {
  if (exchange == nullptr) return read(job, std::move(progress));
  const MonoTime begin = clock->Mono();
  data::StagingJob mine = job;
  mine.files = exchange->files_to_read();
  dataset::Progress total;
  const auto report = [&](int64_t files, int64_t bytes) {
    total = {.files = files, .files_total = std::ssize(job.files), .bytes = bytes};
    if (progress != nullptr) progress(total);
  };
  ASSIGN_OR_RETURN(data::Staged staged, read(std::move(mine), [&](const dataset::Progress& p) {
                     report(p.files, p.bytes);
                   }));
  RETURN_IF_ERROR(data::MakeFolders(job));
  RETURN_IF_ERROR(
      exchange->Run([&](int64_t bytes) { report(total.files + 1, total.bytes + bytes); }));
  staged.peer_bytes = total.bytes - staged.bytes;
  staged.files = total.files;
  staged.bytes = total.bytes;
  staged.elapsed = clock->Mono() - begin;
  return staged;
}

}  // namespace

absl::StatusOr<data::Staged> StageWithPeers(const data::StagingJob& job, const Peers& peers,
                                            comm::Collective* comm,
                                            const std::function<MonoTime()>& deadline,
                                            const Clock* clock,
                                            dataset::ProgressCallback progress) {
  PeerExchange exchange(job, DealInTurn(job.files, peers.ranks.size()), peers, comm, deadline);
  ASSIGN_OR_RETURN(const bool is_shared, exchange.IsSameJob());
  const auto read = [clock](const data::StagingJob& part, dataset::ProgressCallback report) {
    const absl::StatusOr<data::Staged> staged = data::StageFiles(part, clock, std::move(report));
    return WithExitCode(staged,
                        absl::IsDataLoss(staged.status()) ? ExitCode::kBadData : ExitCode::kDisk);
  };
  const bool has_peers = is_shared && peers.ranks.size() > 1;
  return Stage(job, has_peers ? &exchange : nullptr, read, clock, std::move(progress));
}

absl::StatusOr<data::Staged> StageArchivesWithPeers(const StagePlan& plan,
                                                    const dataset::Manifest& manifest,
                                                    const Peers& peers, comm::Collective* comm,
                                                    const std::function<MonoTime()>& deadline,
                                                    const Clock* clock,
                                                    dataset::ProgressCallback progress) {
  PeerExchange exchange(plan.job, plan.parts, peers, comm, deadline);
  ASSIGN_OR_RETURN(const bool is_shared, exchange.IsSameJob());
  if (!is_shared)
    return WithExitCode(
        absl::FailedPreconditionError(absl::StrCat(
            "the index of the archives in ", plan.job.source_dir,
            " is not the same on all nodes of the group: let all of them read one folder")),
        ExitCode::kBadData);
  const auto read = [&](const data::StagingJob& part, dataset::ProgressCallback report) {
    return StageFromArchives(plan.archives, part, manifest, clock, std::move(report));
  };
  return Stage(plan.job, peers.ranks.size() > 1 ? &exchange : nullptr, read, clock,
               std::move(progress));
}

}  // namespace assay
