#include "server/notify/notifier.h"

#include <pthread.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

#include "common/file.h"
#include "common/status.h"
#include "server/notify/command_hook.h"
#include "server/store/reader.h"

namespace assay::notify {
namespace {

// After a commit others are gathered, so that a busy log is read a few times a second.
constexpr absl::Duration kGather = absl::Milliseconds(200);

std::string FolderOf(const std::string& data_directory) {
  return JoinPath(data_directory, "notify");
}

std::string CursorName(const std::string& hook) {
  return absl::StrCat(hook, ".json");
}

}  // namespace

struct Notifier::Post {
  std::unique_ptr<CommandHook> hook;
  std::unique_ptr<Delivery> delivery;
  std::thread thread;
};

absl::Status ForgetOtherHooks(const std::string& data_directory,
                              const std::vector<HookOptions>& hooks) {
  const std::string folder = FolderOf(data_directory);
  if (!FileExists(folder)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  for (const std::string& name : names) {
    const bool is_kept = std::any_of(hooks.begin(), hooks.end(), [&name](const HookOptions& hook) {
      return CursorName(hook.name) == name;
    });
    if (!is_kept) RETURN_IF_ERROR(RemoveTree(JoinPath(folder, name)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Notifier>> Notifier::Start(const NotifierOptions& options,
                                                          const Clock* clock,
                                                          runtime::Watchers* watchers) {
  const std::string folder = FolderOf(options.data_directory);
  const absl::Status made = MakeDirectories(folder, kPrivateDirectory);
  if (!made.ok() && !absl::IsResourceExhausted(made)) return made;
  std::unique_ptr<Notifier> notifier(new Notifier(clock, watchers));
  for (const HookOptions& hook : options.hooks) {
    auto post = std::make_unique<Post>();
    post->hook = std::make_unique<CommandHook>(hook.argv, hook.timeout, &notifier->is_stopping_);
    ASSIGN_OR_RETURN(std::unique_ptr<store::Reader> reader,
                     store::Reader::Open(options.database_path));
    DeliveryOptions delivery = {.name = hook.name,
                                .patterns = hook.patterns,
                                .web_url = options.web_url,
                                .cursor_path = JoinPath(folder, CursorName(hook.name)),
                                .retry_for = hook.retry_for};
    ASSIGN_OR_RETURN(post->delivery, Delivery::Open(std::move(delivery), clock, std::move(reader),
                                                    post->hook.get()));
    notifier->posts_.push_back(std::move(post));
  }
  for (const std::unique_ptr<Post>& post : notifier->posts_)
    post->thread = std::thread(
        [notifier = notifier.get(), delivery = post->delivery.get()] { notifier->Loop(delivery); });
  return notifier;
}

Notifier::Notifier(const Clock* clock, runtime::Watchers* watchers)
    : clock_(*clock), watchers_(*watchers) {
  ticket_ = watchers_.Subscribe({}, [this](int64_t) {
    MutexLock lock(&mutex_);
    ++commit_count_;
    committed_.NotifyAll();
  });
}

Notifier::~Notifier() {
  watchers_.Unsubscribe(ticket_);
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
    committed_.NotifyAll();
    stopped_.NotifyAll();
  }
  for (const std::unique_ptr<Post>& post : posts_)
    if (post->thread.joinable()) post->thread.join();
}

std::vector<HookFigures> Notifier::figures() const {
  std::vector<HookFigures> figures;
  for (const std::unique_ptr<Post>& post : posts_)
    figures.push_back(post->delivery->figures());
  return figures;
}

void Notifier::Loop(Delivery* delivery) {
  pthread_setname_np(pthread_self(), "notify");
  while (!is_stopping_) {
    int64_t seen = 0;
    {
      MutexLock lock(&mutex_);
      seen = commit_count_;
    }
    const std::optional<absl::Duration> delay = delivery->Step();
    if (delay.has_value()) {
      AwaitTime(*delay);
    } else {
      AwaitCommit(seen);
      AwaitTime(kGather);
    }
  }
  delivery->Save();
}

void Notifier::AwaitCommit(int64_t seen) {
  MutexLock lock(&mutex_);
  while (!is_stopping_ && commit_count_ == seen)
    committed_.Wait(&mutex_);
}

void Notifier::AwaitTime(absl::Duration delay) {
  const MonoTime end = clock_.Mono() + delay;
  MutexLock lock(&mutex_);
  for (MonoTime now = clock_.Mono(); !is_stopping_ && now < end; now = clock_.Mono())
    stopped_.WaitFor(&mutex_, absl::ToChronoNanoseconds(end - now));
}

}  // namespace assay::notify
