// Commands as hooks, with real processes.

#include "server/notify/command_hook.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "common/file.h"
#include "common/log.h"
#include "common/process.h"
#include "tests/support/await.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"

namespace assay::notify {
namespace {

using ::assay::testing::Await;
using ::assay::testing::IsOk;
using ::assay::testing::IsOkAndHolds;
using ::assay::testing::StatusIs;
using ::assay::testing::TempDir;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CommandHookTest : public ::testing::Test {
 protected:
  CommandHook Shell(const std::string& script, absl::Duration timeout = absl::Minutes(2)) {
    return {{"/bin/sh", "-c", script, "hook", dir_.path()}, timeout, &is_stopped_};
  }
  std::string Read(const std::string& name) { return ReadFile(dir_.Path(name)).value_or("none"); }
  // Whether the process whose number stands in the file has ended, or never got so far.
  bool HasEnded(const std::string& name) {
    pid_t pid = 0;
    return !absl::SimpleAtoi(Read(name), &pid) || !IdentifyProcess(pid).ok();
  }

  TempDir dir_;
  std::atomic<bool> is_stopped_ = false;
};

TEST_F(CommandHookTest, GetsTheDocumentAndNothingOfTheDaemons) {
  const UniqueFd secret(open(dir_.Path("secret").c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(setenv("ASSAY_SECRET_OF_THE_DAEMON", "x", 1), 0);
  CommandHook hook = Shell("cat > $1/stdin; env > $1/env; pwd > $1/pwd; ls /proc/self/fd > $1/fds");

  EXPECT_THAT(hook.Deliver("{\"kind\": \"run.failed\"}\n"), IsOk());

  EXPECT_EQ(Read("stdin"), "{\"kind\": \"run.failed\"}\n");
  EXPECT_EQ(Read("pwd"), "/\n");
  const std::vector<std::string> variables = absl::StrSplit(Read("env"), '\n', absl::SkipEmpty());
  // And what a shell makes by itself.
  EXPECT_THAT(variables, Each(AnyOf(StartsWith("PATH=/"), "LANG=C.UTF-8", StartsWith("PWD="),
                                    StartsWith("SHLVL="), StartsWith("_="))));
  // The three, and the one by which ls looks.
  EXPECT_EQ(Read("fds"), "0\n1\n2\n3\n");
}

TEST_F(CommandHookTest, ArgumentsReachItAsTheyAre) {
  const std::string file = dir_.Path("a");
  CommandHook hook({"/bin/sh", "-c", "printf '%s|' \"$@\" > $0", file, "two words", "$(id)", ""},
                   absl::Minutes(2), &is_stopped_);
  EXPECT_THAT(hook.Deliver("{}"), IsOk());
  EXPECT_THAT(ReadFile(file), IsOkAndHolds("two words|$(id)||"));
}

// More than a pipe holds, to a program that reads none of it.
TEST_F(CommandHookTest, ADocumentThatIsNotReadHoldsNobodyUp) {
  EXPECT_THAT(Shell("exit 0").Deliver(std::string(1 << 20, 'x')), IsOk());
}

TEST_F(CommandHookTest, AFailureSaysHowItEnded) {
  EXPECT_THAT(Shell("exit 7").Deliver("{}"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("exit code 7")));
  CommandHook missing({"/no/such/program"}, absl::Minutes(2), &is_stopped_);
  EXPECT_THAT(missing.Deliver("{}"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/program")));
}

// Both it and what it has started wait at a pipe into which nobody writes.
constexpr char kHangs[] =
    "mkfifo $1/pipe; sh -c 'echo $$ > \"$0\"; read x < \"$1\"' $1/child $1/pipe & "
    "echo $$ > $1/self; read x < $1/pipe";

TEST_F(CommandHookTest, AfterItsTimeItIsKilledWithAllThatItHasStarted) {
  CommandHook hook = Shell(kHangs, absl::Seconds(1));
  EXPECT_THAT(hook.Deliver("{}"),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("did not end within 1s")));
  EXPECT_TRUE(HasEnded("self"));
  EXPECT_TRUE(Await([this] { return HasEnded("child"); }));
}

TEST_F(CommandHookTest, TheEndOfTheDaemonKillsIt) {
  CommandHook hook = Shell(kHangs);
  absl::Status status;
  std::thread thread([&] { status = hook.Deliver("{}"); });
  EXPECT_TRUE(Await([this] { return Read("child") != "none" && !Read("child").empty(); }));
  is_stopped_ = true;
  thread.join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_TRUE(HasEnded("self"));
  EXPECT_TRUE(Await([this] { return HasEnded("child"); }));
  EXPECT_THAT(hook.Deliver("{}"), StatusIs(absl::StatusCode::kCancelled));
}

// As much of RFC 5321 as takes one mail, of which it keeps all lines.
class SmtpServer {
 public:
  SmtpServer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    CHECK(bind(listener_.get(), generic, size) == 0 && listen(listener_.get(), 1) == 0);
    CHECK(getsockname(listener_.get(), generic, &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Serve(); });
  }
  int port() const { return port_; }
  std::vector<std::string> Lines() {
    thread_.join();
    return lines_;
  }

 private:
  void Serve() {
    const UniqueFd peer(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    FILE* const stream = fdopen(dup(peer.get()), "r+");
    const auto say = [&peer](absl::string_view answer) {
      CHECK_OK(WriteAll(peer.get(), absl::StrCat(answer, "\r\n")));
    };
    say("220 ready");
    std::array<char, 1024> line{};
    bool is_data = false;
    while (fgets(line.data(), line.size(), stream) != nullptr) {
      lines_.emplace_back(absl::StripTrailingAsciiWhitespace(line.data()));
      const std::string& said = lines_.back();
      if (is_data && said != ".") continue;
      is_data = said == "DATA" || said == "data";
      say(is_data ? "354 go on" : said == "QUIT" || said == "quit" ? "221 bye" : "250 ok");
    }
    fclose(stream);
  }

  const UniqueFd listener_;
  int port_ = 0;
  std::vector<std::string> lines_;
  std::thread thread_;
};

TEST_F(CommandHookTest, TheMailerThatWeShipMails) {
  SmtpServer server;
  CommandHook hook({PROJECT "/deploy/notify/notify-mail", absl::StrCat("127.0.0.1:", server.port()),
                    "assay@example.org", "ops@example.org", "night@example.org"},
                   absl::Minutes(2), &is_stopped_);
  EXPECT_THAT(
      hook.Deliver("{\"event\": 4711, \"text\": \"r-7 failed (L\\u00e4b)\", "
                   "\"reason\": \"killed\", \"url\": \"https://b.example.org/runs/r-7\"}\n"),
      IsOk());
  EXPECT_THAT(server.Lines(),
              AllOf(Contains(HasSubstr("rcpt TO:<night@example.org>")),
                    Contains(StartsWith("Subject: [assay] ")),
                    Contains("Message-ID: <assay-4711-assay@example.org>"),
                    Contains("reason: killed"), Contains("url: https://b.example.org/runs/r-7")));
}

TEST_F(CommandHookTest, AMailServerThatIsNotThereIsAFailure) {
  CommandHook hook({PROJECT "/deploy/notify/notify-mail", "127.0.0.1:1", "a@b", "c@d"},
                   absl::Minutes(2), &is_stopped_);
  EXPECT_THAT(hook.Deliver("{\"event\": 1, \"text\": \"x\"}"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("exit code 1")));
}

}  // namespace
}  // namespace assay::notify
