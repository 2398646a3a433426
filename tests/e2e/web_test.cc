// The site before a real coordinator, asked by curl as a browser and as a program.

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"

#include "common/file.h"
#include "tests/e2e/site.h"
#include "tests/support/status_matchers.h"
#include "tests/support/tls_client.h"
#include "tests/support/write_file.h"

namespace assay::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kJson[] = "Content-Type: application/json";

// What curl has got.
struct Answer {
  int status = 0;
  std::string head;
  std::string body;
};

class WebTest : public ::testing::Test {
 protected:
  WebTest() : log_(site_.Path("web.fifo")) {
    coordinator_ = std::make_unique<Coordinator>(
        &site_, absl::StrCat("launcher { kind: \"attach\" } web_url: \"", url(), "\""));
    WriteFile(site_.Path("public.token"), Token("site", "public"));
    // The coordinator's own certificate is for this host, too.
    WriteFile(site_.Path("web.textproto"),
              absl::StrCat("listen_address: \"127.0.0.1:", port_.number(), "\" url: \"", url(),
                           "\" server_address: \"", coordinator_->address(),
                           "\" connections_per_address_max: 1000 ca_certificate_path: "
                           "\"etc/ca.crt\" public_token_path: \"public.token\" "
                           "certificate_path: \"etc/server.crt\" key_path: \"etc/server.key\""));
    web_ = site_.Start(
        {site_.Program("assay-web"), absl::StrCat("--config=", site_.Path("web.textproto"))},
        log_.path());
    EXPECT_TRUE(log_.WaitFor(" serving address=").has_value());
  }
  ~WebTest() override {
    // In order, while streams may be open.
    EXPECT_THAT(StopGroup(web_, absl::Minutes(1)), IsOkAndHolds(0));
  }

  std::string url() const { return absl::StrCat("https://127.0.0.1:", port_.number()); }

  std::string Token(const std::string& who, const std::string& role) {
    const Outcome made =
        site_.Assay({"admin", "token", "create", "--principal", who, "--role", role});
    EXPECT_EQ(made.exit_code, 0) << made.Text();
    return std::string(absl::StripTrailingAsciiWhitespace(made.out));
  }

  Answer Curl(const std::string& path, std::vector<std::string> options = {}) {
    std::vector<std::string> argv = {"/usr/bin/curl", "--silent", "--include", "--cacert",
                                     site_.Path("etc/ca.crt")};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.push_back(absl::StrCat(url(), path));
    const Outcome outcome = site_.RunProgram(argv);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.Text();
    Answer answer;
    const std::vector<std::string> parts =
        absl::StrSplit(outcome.out, absl::MaxSplits("\r\n\r\n", 1));
    answer.head = parts[0];
    if (parts.size() > 1) answer.body = parts[1];
    EXPECT_TRUE(absl::SimpleAtoi(answer.head.substr(9, 3), &answer.status)) << answer.head;
    return answer;
  }

  // A browser: what it keeps is in a file.
  Answer Browse(const std::string& path, std::vector<std::string> options = {}) {
    options.insert(options.end(),
                   {"--cookie", site_.Path("jar"), "--cookie-jar", site_.Path("jar")});
    return Curl(path, std::move(options));
  }

  // Sends the form of a page that the browser has just been shown.
  Answer Submit(const std::string& page, const std::string& path, const std::string& field,
                std::vector<std::string> more = {}) {
    const size_t at = page.find("name=\"form_token\" value=\"") + 25;
    more.insert(more.end(),
                {"--header", absl::StrCat("Origin: ", url()), "--data-urlencode",
                 absl::StrCat("form_token=", page.substr(at, page.find('"', at) - at))});
    if (!field.empty()) more.insert(more.end(), {"--data-urlencode", field});
    return Browse(path, std::move(more));
  }

  Answer Call(const std::string& method, const std::string& body, const std::string& token = "") {
    std::vector<std::string> options = {"--header", kJson, "--data", body};
    if (!token.empty()) {
      options.insert(options.end(), {"--header", absl::StrCat("Authorization: Bearer ", token)});
    }
    return Curl(absl::StrCat("/assay.v1.", method), std::move(options));
  }

  // An entry that waits for nodes, which no one is.
  void AddHiddenEntry() {
    ProvideBeacons(site_, "small", 8, 4);
    const Outcome made = site_.Assay({"submit", WriteSubmission(site_, "hidden.toml", {})});
    ASSERT_EQ(made.exit_code, 0) << made.Text();
  }

  Site site_;
  const HeldPort port_;
  std::unique_ptr<Coordinator> coordinator_;
  LogTail log_;
  ProcessId web_;
};

TEST_F(WebTest, SignsInByCodeAndOutAgain) {
  EXPECT_THAT(Browse("/").body, HasSubstr("Sign in"));
  const Outcome link = site_.Assay({"web", "open", "--url", url()});
  ASSERT_EQ(link.exit_code, 0) << link.Text();
  ASSERT_THAT(link.out, StartsWith(absl::StrCat(url(), "/signin?code=")));
  const std::string path(absl::StripTrailingAsciiWhitespace(link.out.substr(url().size())));
  const std::string code = path.substr(path.find('=') + 1);

  // Looking at the link uses nothing up; sending the form does.
  Browse(path);
  const Answer page = Browse(path);
  const Answer entered = Submit(page.body, "/signin", absl::StrCat("code=", code));
  ASSERT_EQ(entered.status, 303) << entered.head << entered.body;
  EXPECT_THAT(entered.head,
              AllOf(HasSubstr("Location: /\r\n"), HasSubstr("Set-Cookie: __Host-assay="),
                    HasSubstr("; Path=/; Secure; HttpOnly; SameSite=Strict")));
  const Answer home = Browse("/");
  EXPECT_THAT(home.body, AllOf(HasSubstr("operator"), HasSubstr("Sign out")));
  EXPECT_THAT(home.head, HasSubstr("Cache-Control: no-store"));
  EXPECT_EQ(Submit(Browse(path).body, "/signin", absl::StrCat("code=", code)).status, 403)
      << "a code works once";

  // Another site's form, and one without this session's token, sign nobody out.
  EXPECT_EQ(
      Browse("/signout", {"--header", "Origin: https://evil.example", "--data", "x=y"}).status,
      403);
  EXPECT_EQ(
      Browse("/signout", {"--header", absl::StrCat("Origin: ", url()), "--data", "x=y"}).status,
      403);
  EXPECT_THAT(Browse("/").body, HasSubstr("Sign out"));
  EXPECT_EQ(Submit(Browse("/").body, "/signout", "").status, 303);
  EXPECT_THAT(Browse("/").body, Not(HasSubstr("Sign out")));
}

TEST_F(WebTest, ARevokedTokenLosesItsSession) {
  const std::string token = Token("alice", "reviewer");
  ASSERT_EQ(Submit(Browse("/signin").body, "/signin", absl::StrCat("token=", token)).status, 303);
  EXPECT_THAT(Browse("/").body, HasSubstr("alice, reviewer"));
  EXPECT_EQ(Call("AdminService/ListRounds", "{}", token).status, 200);

  const Json tokens = site_.AssayJson({"admin", "token", "list"});
  for (const Json& one : tokens["items"]) {
    if (one["principal"] == "alice") {
      EXPECT_EQ(site_.Assay({"admin", "token", "revoke", one["id"]}).exit_code, 0);
    }
  }

  const Answer refused = Browse("/");
  EXPECT_EQ(refused.status, 401);
  EXPECT_THAT(refused.head, HasSubstr("Set-Cookie: __Host-assay=; "));
  EXPECT_EQ(Browse("/").status, 200) << "as the public again";
  EXPECT_THAT(Browse("/").body, Not(HasSubstr("alice")));
  EXPECT_EQ(Call("AdminService/ListRounds", "{}", token).status, 401);
}

TEST_F(WebTest, ARevokedTokenLosesWhatItsCodesHaveOpened) {
  const std::string token = Token("alice", "reviewer");
  const Answer code = Call("AdminService/CreateWebCode", "{}", token);
  ASSERT_EQ(code.status, 200) << code.body;
  const std::string secret = Json::parse(code.body)["code"];
  const Answer entered = Submit(Browse("/signin").body, "/signin", absl::StrCat("code=", secret));
  ASSERT_EQ(entered.status, 303) << entered.body;
  EXPECT_THAT(Browse("/").body, HasSubstr("alice, reviewer"));

  const Json tokens = site_.AssayJson({"admin", "token", "list"});
  const auto first = std::find_if(tokens["items"].begin(), tokens["items"].end(),
                                  [](const Json& one) { return one["principal"] == "alice"; });
  ASSERT_NE(first, tokens["items"].end());
  std::string origin = (*first)["id"];
  for (const Json& one : tokens["items"])
    if (one["principal"] == "alice") origin = std::min(origin, one["id"].get<std::string>());
  ASSERT_EQ(site_.Assay({"admin", "token", "revoke", origin}).exit_code, 0);

  EXPECT_EQ(Browse("/").status, 401);
  EXPECT_THAT(Browse("/").body, Not(HasSubstr("alice")));
}

TEST_F(WebTest, AQuestionIsKeptUnderANameByItsPage) {
  const std::string token = Token("alice", "reviewer");
  EXPECT_THAT(Browse("/query?kind=run").body, Not(HasSubstr("Keep it as")));
  const Answer wrong = Browse("/query?kind=runs");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(wrong.body, HasSubstr("kinds: entry, run, finding, worker, hyperparameter"));
  ASSERT_EQ(Submit(Browse("/signin").body, "/signin", absl::StrCat("token=", token)).status, 303);
  const Answer page =
      Browse("/query?kind=run&filter=nodes%3E1&group_by=system&aggregate=count,p50(minutes)");
  ASSERT_EQ(page.status, 200) << page.body;
  EXPECT_THAT(page.body, HasSubstr("name=\"aggregate\" value=\"p50(minutes)\""));

  const auto save = [&](const std::string& name) {
    return Submit(page.body, "/query", absl::StrCat("name=", name),
                  {"--data-urlencode", "kind=run", "--data-urlencode", "filter=nodes>1",
                   "--data-urlencode", "group_by=system", "--data-urlencode", "aggregate=count",
                   "--data-urlencode", "aggregate=p50(minutes)"});
  };
  EXPECT_EQ(save("no name").status, 400);
  const Answer saved = save("large");
  ASSERT_EQ(saved.status, 303) << saved.body;
  const std::string path =
      "/query?filter=nodes%3E1&kind=run&group_by=system&aggregate=count%2Cp50%28minutes%29";
  EXPECT_THAT(saved.head, HasSubstr(absl::StrCat("Location: ", path, "\r\n")));
  EXPECT_THAT(Browse(path).body, HasSubstr(">large</a> by alice"));
  EXPECT_EQ(
      Browse("/query", {"--header", "Origin: https://evil.example", "--data", "name=x"}).status,
      403);

  // On the command line, too, a question has an address.
  const Json asked = site_.AssayJson({"query", "--kind", "run", "nodes>1", "--group-by", "system",
                                      "--aggregate", "count,p50(minutes)", "--url"});
  EXPECT_EQ(asked["url"], absl::StrCat(url(), path));
}

TEST_F(WebTest, NobodySignsInWithWhatIsNoPersonsToken) {
  const std::string site_token = Token("other", "public");
  for (const std::string& token : {site_token, std::string("assay_none"), std::string("x")}) {
    const Answer answer = Submit(Browse("/signin").body, "/signin", absl::StrCat("token=", token));
    EXPECT_THAT(answer.status, ::testing::AnyOf(401, 403)) << token;
    EXPECT_THAT(answer.body, Not(HasSubstr(token == "x" ? "assay_none" : token)));
  }
  EXPECT_EQ(Submit(Browse("/signin").body, "/signin", "code=none").status, 403);
}

TEST_F(WebTest, ThePublicSeesWhatIsPublishedOnly) {
  AddHiddenEntry();
  const std::string token = Token("bob", "reviewer");
  const std::string list = "SubmissionService/ListSubmissions";

  EXPECT_THAT(Call(list, "{}").body, Not(HasSubstr("submissions/e-1")));
  EXPECT_EQ(Call("SubmissionService/GetSubmission", R"({"name":"submissions/e-1"})").status, 404);
  EXPECT_THAT(Call(list, "", token).body, HasSubstr("submissions/e-1"));
  EXPECT_EQ(Call("AdminService/ListTokens", "{}").status, 403);
  // A run that one may not see has no stream either, and says why.
  const Answer live = Curl("/runs/r-1/live", {"--header", "Accept: text/event-stream"});
  EXPECT_EQ(live.status, 200);
  EXPECT_THAT(live.body, AllOf(HasSubstr("event: end"), HasSubstr("not_found")));
  EXPECT_EQ(Curl("/runs/r-1/live.json").status, 404);

  const std::string archive = OraclePath("hpc_results_v0.7.tar.xz");
  if (archive.empty()) GTEST_SKIP() << "the published logs are not in ASSAY_ORACLE_DIR";
  ASSERT_EQ(site_.RunProgram({"/bin/tar", "-xJf", archive, "-C", site_.Path("cache")}).exit_code,
            0);
  const Outcome imported = site_.Assay(
      {"import", site_.Path("cache/hpc_results_v0.7/NCSA"), "--round", "v0.7", "--json"});
  ASSERT_EQ(imported.exit_code, 0) << imported.Text();
  const Json shown = Json::parse(Call(list, "{}").body, nullptr, false);
  ASSERT_FALSE(shown.is_discarded());
  ASSERT_FALSE(shown["submissions"].empty());
  for (const Json& entry : shown["submissions"])
    EXPECT_EQ(entry["spec"]["organization"], "NCSA");
}

// The coordinator takes 100 calls at a time over a connection: streams must not use them up.
TEST_F(WebTest, ManyStreamsLeaveRoomForPages) {
  constexpr size_t kStreams = 220;
  constexpr size_t kWaiting = 40;
  const std::string token = Token("dave", "operator");
  const std::string request = absl::StrCat(
      "POST /assay.v1.SubmissionService/WatchEvents HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ",
      token, "\r\n", kJson, "\r\nContent-Length: 15\r\n\r\n{\"follow\":true}");
  std::vector<std::unique_ptr<TlsClient>> streams;
  for (size_t i = 0; i < kStreams; ++i) {
    streams.push_back(std::make_unique<TlsClient>(absl::StrCat("127.0.0.1:", port_.number())));
    ASSERT_TRUE(streams.back()->Send(request)) << i;
    // No more wait at a time than the site lets wait.
    if (i < kWaiting) continue;
    // Each has the first event: that a token was made.
    ASSERT_THAT(streams[i - kWaiting]->ReadUntil("TokenCreated"), HasSubstr("HTTP/1.1 200 OK"));
  }
  for (size_t i = kStreams - kWaiting; i < kStreams; ++i)
    ASSERT_THAT(streams[i]->ReadUntil("TokenCreated"), HasSubstr("HTTP/1.1 200 OK"));

  EXPECT_EQ(Call("AdminService/ListRounds", "{}", token).status, 200);
  EXPECT_EQ(Curl("/").status, 200);
}

// Each example of docs/api.md, in order, against what the text below it says; "…" stands for
// anything.
TEST_F(WebTest, TheExamplesOfTheManualAreTrue) {
  AddHiddenEntry();
  const std::string token = Token("carol", "reviewer");
  const absl::StatusOr<std::string> manual = ReadFile(absl::StrCat(DOCS, "/api.md"));
  ASSERT_THAT(manual, IsOk());
  const std::vector<std::string> parts = absl::StrSplit(*manual, "```sh\n");
  ASSERT_GE(parts.size(), 6u);
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::vector<std::string> blocks = absl::StrSplit(parts[i], "```");
    ASSERT_GE(blocks.size(), 3u);
    const std::string command = absl::StrCat("CA='", site_.Path("etc/ca.crt"), "' TOKEN='", token,
                                             "' SITE='", url(), "'\n", blocks[0]);
    // The stream of an entry goes on only if it is asked to.
    const Outcome outcome = site_.RunProgram({"/bin/sh", "-euc", command});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.Text();
    std::string rest = outcome.out;
    const std::string wanted(absl::StripSuffix(absl::StripPrefix(blocks[2], "text\n"), "\n"));
    for (const absl::string_view piece : absl::StrSplit(wanted, "…")) {
      const size_t at = rest.find(std::string(piece));
      ASSERT_NE(at, std::string::npos) << blocks[0] << "\ngave\n"
                                       << outcome.out << "\nno " << piece;
      rest = rest.substr(at + piece.size());
    }
  }
}

// The processes of `assay dev`, as it has written them down.
ProcessId DevProcess(const Site& site, const std::string& name) {
  const std::string text =
      ReadFile(site.Path(absl::StrCat("run/assay/", name, ".pid"))).value_or("");
  const std::vector<std::string> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  ProcessId process;
  EXPECT_TRUE(words.size() == 2 && absl::SimpleAtoi(words[0], &process.pid) &&
              absl::SimpleAtoi(words[1], &process.start_ticks))
      << name << ": " << text;
  return process;
}

// True once the process, which is no child of this one, has ended; false after a minute.
bool AwaitEnd(const ProcessId& process) {
  const UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
  if (!pidfd.is_open()) return true;
  constexpr int kPatienceMs = 60'000;
  pollfd wait = {pidfd.get(), POLLIN, 0};
  return poll(&wait, 1, kPatienceMs) == 1;
}

// SIGTERM ends it in order; of SIGKILL its children hear by the kernel.
TEST(DevSiteTest, NothingIsLeftOfIt) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    const Site site;
    LogTail log(site.Path("dev.fifo"));
    const ProcessId dev = site.Start({site.Program("assay"), "dev", "--workers", "1"}, log.path());
    const std::optional<std::string> line = log.WaitFor("/signin?code=");
    ASSERT_TRUE(line.has_value());
    const std::string link = line->substr(line->find("https://"));
    const Outcome page = site.RunProgram(
        {"/usr/bin/curl", "--silent", "--cacert", site.Path("run/assay/ca.crt"), link});
    EXPECT_THAT(page.out, HasSubstr("Sign in")) << page.Text();
    const ProcessId coordinator = DevProcess(site, "assayd");
    const ProcessId web = DevProcess(site, "assay-web");

    ASSERT_THAT(SignalGroup(dev, signal), IsOk());

    EXPECT_TRUE(AwaitEnd(coordinator)) << signal;
    EXPECT_TRUE(AwaitEnd(web)) << signal;
    EXPECT_TRUE(AwaitEnd(dev)) << signal;
  }
}

}  // namespace
}  // namespace assay::testing
