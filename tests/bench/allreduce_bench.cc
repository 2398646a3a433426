// All-reduce between whole processes on this host: ours, through memory that the ranks share,
// against Open MPI and gloo.
//
//   allreduce_bench [RANKS...]            default: 2 3 4
//   allreduce_bench --seals [RANKS...]    default: 2; ours alone, messages with seals against plain
//   ones
//
// All sum float32 in place in the same loop (allreduce_loop.h). They run in turn, three times each;
// printed is the median of the three medians per size, and the others' time by ours: above 1, ours
// is faster. What was not found at build time does not run, and the output says so.

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/process.h"
#include "tests/bench/allreduce_loop.h"
#include "tests/support/temp_dir.h"
#include "worker/comm/collective.h"
#include "worker/comm/registry.h"
#include "worker/comm/rendezvous_server.h"
#include "worker/comm/ring.h"

namespace assay::bench {
namespace {

constexpr int kRepeats = 3;
constexpr absl::Duration kPatience = absl::Minutes(5);

// How our side is run.
struct Variant {
  const char* name = "";
  const char* transports = "posix,self";  // UCX_TLS
  const char* sealing = "plain";          // or "sealed"
};

using Medians = std::map<size_t, std::vector<double>>;  // seconds, by bytes

// One rank of ours.
int RunRank(const comm::CollectiveOptions& options) {
  const RealClock clock;
  const MonoTime deadline = clock.Mono() + kPatience;
  absl::StatusOr<std::unique_ptr<comm::Collective>> comm =
      comm::OpenCollective("ucx", options, &clock, deadline);
  CHECK_OK(comm.status());
  MeasureAllReduce(AllReduceSide{
      .prints = options.rank == 0,
      .all_reduce =
          [&](float* values, size_t count) {
            CHECK_OK(comm::AllReduceSum(comm->get(), std::span<float>(values, count), deadline));
          },
      .barrier = [&] { CHECK_OK(comm::Barrier(comm->get(), deadline)); }});
  CHECK_OK((*comm)->Close(deadline));
  return 0;
}

void AddResults(const std::string& path, Medians* medians) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  CHECK_OK(text.status());
  std::istringstream lines(*text);
  size_t bytes = 0;
  double seconds = 0;
  while (lines >> bytes >> seconds)
    (*medians)[bytes].push_back(seconds);
}

void WaitForSuccess(const ProcessId& process, const std::string& output) {
  const absl::StatusOr<int> code = WaitForExit(process, kPatience);
  CHECK_OK(code.status());
  CHECK(*code == 0) << "exit code " << *code << ": " << *ReadFile(output);
}

void RunOurs(const std::string& program, int ranks, const Variant& variant, Medians* medians) {
  const testing::TempDir dir;
  const RealClock clock;
  std::string address;
  {
    const auto server =
        comm::RendezvousServer::Start(comm::RendezvousServerOptions{.token = "bench"}, &clock);
    CHECK_OK(server.status());
    address = (*server)->address();  // free again when the server ends
  }
  std::vector<ProcessId> processes;
  const auto output = [&](int rank) { return dir.Path(absl::StrCat("rank", rank)); };
  for (int rank = 0; rank < ranks; ++rank) {
    const absl::StatusOr<ProcessId> process =
        Spawn(SpawnOptions{.argv = {program, "--rank", absl::StrCat(rank), absl::StrCat(ranks),
                                    address, variant.sealing},
                           .environment = {absl::StrCat("UCX_TLS=", variant.transports)},
                           .output_path = output(rank)});
    CHECK_OK(process.status());
    processes.push_back(*process);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    WaitForSuccess(processes[static_cast<size_t>(rank)], output(rank));
  }
  AddResults(output(0), medians);
}

void RunGloo(const std::string& program, int ranks, Medians* medians) {
  const testing::TempDir dir;
  const testing::TempDir store;
  std::vector<ProcessId> processes;
  const auto output = [&](int rank) { return dir.Path(absl::StrCat("rank", rank)); };
  for (int rank = 0; rank < ranks; ++rank) {
    const absl::StatusOr<ProcessId> process =
        Spawn(SpawnOptions{.argv = {program, absl::StrCat(rank), absl::StrCat(ranks), store.path()},
                           .output_path = output(rank)});
    CHECK_OK(process.status());
    processes.push_back(*process);
  }
  for (int rank = 0; rank < ranks; ++rank)
    WaitForSuccess(processes[static_cast<size_t>(rank)], output(rank));
  AddResults(output(0), medians);
}

void RunOpenMpi(const std::string& program, int ranks, Medians* medians) {
  const testing::TempDir dir;
  const std::string output = dir.Path("mpi");
  const absl::StatusOr<ProcessId> process = Spawn(SpawnOptions{
      .argv = {"/bin/sh", "-c",
               absl::StrFormat("exec mpirun --allow-run-as-root --oversubscribe --bind-to none "
                               "-n %d '%s'",
                               ranks, program)},
      .output_path = output});
  CHECK_OK(process.status());
  WaitForSuccess(*process, output);
  AddResults(output, medians);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Whom ours is held against.
struct Peer {
  const char* name;
  const char* program;
  const char* package;  // that has it, in Debian
  void (*run)(const std::string& program, int ranks, Medians* medians);
};
constexpr Peer kPeers[] = {{"Open MPI", "allreduce_mpi", "libopenmpi-dev", RunOpenMpi},
                           {"gloo", "allreduce_gloo", "libgloo-dev", RunGloo}};

void Compare(const std::string& directory, int ranks) {
  Medians ours;
  Medians theirs[std::size(kPeers)];
  for (int i = 0; i < kRepeats; ++i) {
    RunOurs(JoinPath(directory, "allreduce_bench"), ranks, Variant{}, &ours);
    for (size_t p = 0; p < std::size(kPeers); ++p) {
      const std::string program = JoinPath(directory, kPeers[p].program);
      if (FileExists(program)) kPeers[p].run(program, ranks, &theirs[p]);
    }
  }
  std::cout << absl::StrFormat("%d ranks\n%12s %12s %10s", ranks, "bytes", "ours us", "GB/s");
  for (const Peer& peer : kPeers)
    std::cout << absl::StrFormat(" %12s %7s", absl::StrCat(peer.name, " us"), "ratio");
  std::cout << "\n";
  for (const auto& [bytes, seconds] : ours) {
    // Bus bandwidth: what each rank must send at least, 2(n-1)/n of the vector, per second.
    const double bus_gb = 2.0 * (ranks - 1) / ranks * static_cast<double>(bytes) / 1e9;
    const double our_seconds = Median(seconds);
    std::cout << absl::StrFormat("%12d %12.1f %10.2f", bytes, our_seconds * 1e6,
                                 bus_gb / our_seconds);
    for (const Medians& medians : theirs) {
      const auto found = medians.find(bytes);
      if (found == medians.end()) {
        std::cout << absl::StrFormat(" %12s %7s", "-", "-");
        continue;
      }
      const double peer_seconds = Median(found->second);
      std::cout << absl::StrFormat(" %12.1f %7.2f", peer_seconds * 1e6, peer_seconds / our_seconds);
    }
    std::cout << "\n";
  }
  for (size_t p = 0; p < std::size(kPeers); ++p)
    if (theirs[p].empty())
      std::cout << kPeers[p].name << " is missing: it was not found when this was built ("
                << kPeers[p].package << ")\n";
  std::cout << "load average " << ReadFile("/proc/loadavg").value_or("?") << std::flush;
}

void CompareSeals(const std::string& directory, int ranks) {
  constexpr Variant kVariants[] = {{"shared memory", "posix,self", "plain"},
                                   {"shared memory", "posix,self", "sealed"},
                                   {"TCP", "tcp,self", "plain"},
                                   {"TCP", "tcp,self", "sealed"}};
  Medians medians[std::size(kVariants)];
  for (int i = 0; i < kRepeats; ++i) {
    for (size_t v = 0; v < std::size(kVariants); ++v)
      RunOurs(JoinPath(directory, "allreduce_bench"), ranks, kVariants[v], &medians[v]);
  }
  std::cout << absl::StrFormat("%d ranks\n%14s %12s %12s %12s %7s\n", ranks, "", "bytes",
                               "plain us", "sealed us", "ratio");
  for (size_t v = 0; v < std::size(kVariants); v += 2) {
    for (const auto& [bytes, seconds] : medians[v]) {
      const double plain = Median(seconds);
      const double sealed = Median(medians[v + 1].at(bytes));
      std::cout << absl::StrFormat("%14s %12d %12.1f %12.1f %7.2f\n", kVariants[v].name, bytes,
                                   plain * 1e6, sealed * 1e6, sealed / plain);
    }
  }
  std::cout << "load average " << ReadFile("/proc/loadavg").value_or("?") << std::flush;
}

int Main(std::span<char*> args) {
  if (args.size() == 6 && absl::string_view(args[1]) == "--rank") {
    comm::CollectiveOptions options{.rendezvous_address = args[4],
                                    .token = "bench",
                                    .sealing = absl::string_view(args[5]) == "sealed"
                                                   ? comm::Sealing::kAlways
                                                   : comm::Sealing::kNetworkTrusted};
    CHECK(absl::SimpleAtoi(args[2], &options.rank) &&
          absl::SimpleAtoi(args[3], &options.world_size));
    return RunRank(options);
  }
  const absl::StatusOr<std::string> directory = ProgramDirectory();
  CHECK_OK(directory.status());
  const bool compares_seals = args.size() > 1 && absl::string_view(args[1]) == "--seals";
  std::vector<int> worlds;
  for (const char* arg : args.subspan(compares_seals ? 2 : 1)) {
    int ranks = 0;
    if (!absl::SimpleAtoi(arg, &ranks) || ranks < 2 || ranks > 64) {
      std::cerr << "usage: allreduce_bench [--seals] [RANKS...]   each 2 to 64\n";
      return 2;
    }
    worlds.push_back(ranks);
  }
  if (worlds.empty()) worlds = compares_seals ? std::vector<int>{2} : std::vector<int>{2, 3, 4};
  for (const int ranks : worlds)
    compares_seals ? CompareSeals(*directory, ranks) : Compare(*directory, ranks);
  return 0;
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  return assay::bench::Main(std::span<char*>(argv, static_cast<size_t>(argc)));
}
