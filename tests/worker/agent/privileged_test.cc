// What agents that are nobody special get from the privileged helper of their node.

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/clock.h"
#include "common/file.h"
#include "common/process.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "worker/agent/cache_reset.h"
#include "worker/agent/touch_monitor.h"
#include "worker/privileged/helper.h"

namespace assay::agent {
namespace {

using ::testing::HasSubstr;
using testing::IsOk;
using testing::IsOkAndHolds;
using testing::StatusIs;

constexpr uid_t kNobody = 65534;

class PrivilegedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root opens fanotify for others";
    for (const char* folder : {"data/train", "run", "elsewhere"})
      ASSERT_THAT(MakeDirectories(dir_.Path(folder)), IsOk());
    ASSERT_THAT(WriteFileAtomic(dir_.Path("data/train/a.bin"), "data", 0644), IsOk());
    for (const char* folder : {"", "data", "data/train", "run", "elsewhere"})
      std::filesystem::permissions(dir_.Path(folder), std::filesystem::perms(0755));
    absl::StatusOr<UniqueFd> listener = privileged::Listen(socket_, "nogroup");
    ASSERT_THAT(listener, IsOk());
    listener_ = *std::move(listener);
    helper_ = fork();  // while this process has one thread
    if (helper_ != 0) return;
    const privileged::HelperOptions options{.roots = {dir_.Path("data")},
                                            .drop_caches_path = dir_.Path("drop_caches")};
    while (privileged::AnswerOne(listener_.get(), options).ok()) {
    }
    _exit(1);
  }
  void TearDown() override {
    if (helper_ <= 0) return;
    kill(helper_, SIGKILL);
    waitpid(helper_, nullptr, 0);
  }

  static std::string CodesOf(const Touch& touch) {
    std::string codes;
    for (const WitnessHole& hole : touch.holes)
      codes += (codes.empty() ? "" : " ") + hole.code;
    return codes;
  }
  // Runs `what` in a process of nobody's, in group `group`; what it returns is empty if all is
  // well.
  static std::string AsNobody(const std::function<std::string()>& what, gid_t group = kNobody) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      std::string problem = "cannot become nobody";
      if (setgroups(0, nullptr) == 0 && setgid(group) == 0 && setuid(kNobody) == 0)
        problem = what();
      const ssize_t written = write(ends[1], problem.data(), problem.size());
      _exit(written < 0 ? 1 : 0);
    }
    close(ends[1]);
    std::string problem(4096, '\0');
    const ssize_t size = read(ends[0], problem.data(), problem.size());
    close(ends[0]);
    waitpid(child, nullptr, 0);
    return problem.substr(0, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  }

  const testing::TempDir dir_;
  const std::string socket_ = dir_.Path("run/privileged.sock");
  UniqueFd listener_;
  pid_t helper_ = 0;
};

TEST_F(PrivilegedTest, NobodyDropsTheWholePageCache) {
  ASSERT_THAT(WriteFileAtomic(dir_.Path("drop_caches"), "", 0600), IsOk());
  EXPECT_EQ(AsNobody([this]() -> std::string {
              const absl::StatusOr<CacheReset> reset =
                  ResetCaches(dir_.Path("data"), dir_.Path("drop_caches"), socket_);
              return reset.ok() ? reset->method : std::string(reset.status().message());
            }),
            "drop_caches");
  EXPECT_THAT(ReadFile(dir_.Path("drop_caches")), IsOkAndHolds("3"));
}

TEST_F(PrivilegedTest, NobodysWitnessNamesTheProcessThatTouches) {
  EXPECT_EQ(
      AsNobody([this]() -> std::string {
        const RealClock clock;
        absl::StatusOr<TouchMonitor> monitor = TouchMonitor::Arm(
            {.directories = {dir_.Path("data/train")}, .helper_socket = socket_}, &clock);
        if (!monitor.ok()) return std::string(monitor.status().message());
        if (monitor->mechanism() != "fanotify") return "only inotify";
        const auto child = Spawn(
            {.argv = {"/bin/sh", "-c", "read x <" + dir_.Path("data/train/a.bin") + "; sleep 1"},
             .output_path = "/dev/null"});
        if (!child.ok()) return std::string(child.status().message());
        pollfd entry{monitor->fd(), POLLIN, 0};
        if (poll(&entry, 1, 20'000) != 1) return "nothing is seen";
        const absl::StatusOr<std::optional<Touch>> touch = monitor->Poll();
        if (!touch.ok()) return std::string(touch.status().message());
        if (!touch->has_value()) return "nothing is told";
        return (*touch)->is_attributed ? (*touch)->path : "nobody is named";
      }),
      std::filesystem::canonical(dir_.Path("data/train/a.bin")));
}

// Events of a whole file system would tell an ordinary account of everybody's files.
TEST_F(PrivilegedTest, NobodyGetsToWatchAFileSystemAndSaysWhatThatHides) {
  ASSERT_EQ(link(dir_.Path("data/train/a.bin").c_str(), dir_.Path("elsewhere/link").c_str()), 0);
  EXPECT_THAT(AsNobody([this]() -> std::string {
                const RealClock clock;
                absl::StatusOr<TouchMonitor> monitor = TouchMonitor::Arm(
                    {.directories = {dir_.Path("data/train")}, .helper_socket = socket_}, &clock);
                if (!monitor.ok()) return std::string(monitor.status().message());
                if (monitor->watched() != "folders") return "a whole file system is watched";
                if (!ReadFile(dir_.Path("elsewhere/link")).ok()) return "the link cannot be read";
                const auto elsewhere = Spawn({.argv = {"/bin/cat", dir_.Path("elsewhere/link")},
                                              .output_path = "/dev/null"});
                if (!elsewhere.ok() || !WaitForExit(*elsewhere, absl::Minutes(1)).ok())
                  return "no cat";
                absl::StatusOr<std::optional<Touch>> touch = monitor->Poll();
                if (!touch.ok() || touch->has_value()) return "a link elsewhere is seen: say so";
                const auto cat = Spawn({.argv = {"/bin/cat", dir_.Path("data/train/a.bin")},
                                        .output_path = "/dev/null"});
                if (!cat.ok() || !WaitForExit(*cat, absl::Minutes(1)).ok()) return "no cat";
                touch = monitor->Poll();
                if (!touch.ok() || !touch->has_value()) return "nothing is seen";
                return CodesOf(**touch);
              }),
              ::testing::StartsWith("W-NO-GATE W-NO-FS-MARK"));
}

// The queue of a helper's descriptor is limited: who floods it is seen, what comes next is not.
TEST_F(PrivilegedTest, LostEventsAreAHoleOfWhatIsSeenLater) {
  constexpr int kQueueMax = 16'384;  // fs.fanotify.max_queued_events, as it comes
  for (int i = 0; i < kQueueMax + 100; ++i) {
    const UniqueFd file(open(dir_.Path("data/train/f" + std::to_string(i)).c_str(),
                             O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    ASSERT_TRUE(file.is_open());
  }
  EXPECT_THAT(
      AsNobody([this]() -> std::string {
        const RealClock clock;
        absl::StatusOr<TouchMonitor> monitor = TouchMonitor::Arm(
            {.directories = {dir_.Path("data/train")}, .helper_socket = socket_}, &clock);
        if (!monitor.ok()) return std::string(monitor.status().message());
        const auto flood =
            Spawn({.argv = {"/bin/sh", "-c",
                            "for f in " + dir_.Path("data/train/f*") + "; do : < $f; done"}});
        if (!flood.ok() || !WaitForExit(*flood, absl::Minutes(1)).ok()) return "no flood";
        const absl::StatusOr<std::optional<Touch>> first = monitor->Poll();
        if (!first.ok() || !first->has_value() || (*first)->is_attributed)
          return "the flood is not seen";
        const auto reader = Spawn(
            {.argv = {"/bin/sh", "-c", "read x <" + dir_.Path("data/train/a.bin") + "; sleep 1"},
             .output_path = "/dev/null"});
        pollfd entry{monitor->fd(), POLLIN, 0};
        if (!reader.ok() || poll(&entry, 1, 20'000) != 1) return "the reader is not seen";
        const absl::StatusOr<std::optional<Touch>> touch = monitor->Poll();
        if (!touch.ok() || !touch->has_value()) return "nothing is told";
        return (*touch)->is_attributed ? CodesOf(**touch) : "nobody is named";
      }),
      HasSubstr("W-OVERFLOW"));
}

TEST_F(PrivilegedTest, NothingElseIsWatched) {
  std::filesystem::create_directory_symlink(dir_.Path("elsewhere"), dir_.Path("data/link"));
  for (const std::string& directory :
       {std::string("/etc"), dir_.Path("elsewhere"), dir_.Path("data/link"),
        dir_.Path("data/../elsewhere"), dir_.path()}) {
    EXPECT_THAT(privileged::AskToWatch(socket_, {dir_.Path("data"), directory}, false).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is not below a --root")))
        << directory;
  }
  EXPECT_THAT(privileged::AskToWatch(socket_, {dir_.Path("data/none")}, false).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("No such file")));
}

TEST_F(PrivilegedTest, OnlyItsGroupMayAsk) {
  EXPECT_THAT(
      AsNobody([this] { return std::string(privileged::AskToDropCaches(socket_).message()); },
               /*group=*/1),
      HasSubstr("Permission denied"));
}

TEST_F(PrivilegedTest, NonsenseIsRefusedAndTheNextIsServed) {
  sockaddr_un address{.sun_family = AF_UNIX};
  std::strncpy(static_cast<char*>(address.sun_path), socket_.c_str(), sizeof(address.sun_path) - 1);
  for (const std::string& request : {std::string("watch"), std::string("drop_caches\n/"),
                                     std::string(3, '\0'), std::string(100'000, 'x')}) {
    const UniqueFd peer(socket(AF_UNIX, SOCK_SEQPACKET, 0));
    ASSERT_EQ(connect(peer.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(send(peer.get(), request.data(), request.size(), 0), std::ssize(request));
    char answer[256] = {};
    EXPECT_GE(recv(peer.get(), answer, sizeof(answer) - 1, 0), 0);
    EXPECT_THAT(std::string(answer), ::testing::AnyOf("", HasSubstr("error\n")));
  }
  EXPECT_THAT(privileged::AskToWatch(socket_, {dir_.Path("data")}, true), IsOk());
}

}  // namespace
}  // namespace assay::agent
