// What may be read under each key: which generations were offered to cairn, how their stores ended,
// and since when one cannot be there any more. Fed by those who call, asked by those who verify.
// Knows numbers only. One mutex: it is no part of what is tested.
//
// A generation is over once a call that proves it has returned: a later store of its key was
// accepted, or the key was forgotten, and that call began after the generation's store was
// accepted. Who begins to restore after that moment must not see it. Of calls that overlap nothing
// is concluded. (The exact judge is the checker of histories; this one lives as long as it likes.)
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "stress/world/image.hpp"

namespace cairn::stress {

class image_ledger {
 public:
  /// Moments, by the ledger's own clock.
  using moment = std::uint64_t;

  explicit image_ledger(std::uint32_t keys) : keys_(keys) {}

  /// A new generation of the key, about to be stored.
  image_name offer(std::uint32_t key) {
    const std::lock_guard held(mutex_);
    const image_name name{key, ++generations_};
    keys_[key].emplace(name.generation, entry{++now_});
    return name;
  }
  /// The store of an offered image was refused; nobody may ever read it.
  void refused(image_name name) { over(name, false); }
  void accepted(image_name name) {
    const std::lock_guard held(mutex_);
    auto& images = keys_[name.key];
    entry& mine = images[name.generation];
    const moment asked = mine.asked;
    for (auto& [generation, each] : images) end(each, asked);
    mine.accepted = ++now_;
  }
  /// An accepted store has ended. False: it was read, and failed all the same.
  bool ended(image_name name, bool well) { return over(name, well); }

  moment now() {
    const std::lock_guard held(mutex_);
    return ++now_;
  }
  /// A call that began at `since` and is over has forgotten the key, or all.
  void forgotten(std::uint32_t key, moment since) {
    const std::lock_guard held(mutex_);
    for (auto& [generation, each] : keys_[key]) end(each, since);
  }
  void all_forgotten(moment since) {
    const std::lock_guard held(mutex_);
    for (auto& images : keys_)
      for (auto& [generation, each] : images) end(each, since);
  }

  /// Could somebody who began to restore at `since` see this image? Null: yes.
  const char* why_not(image_name name, moment since) {
    const std::lock_guard held(mutex_);
    auto found = keys_[name.key].find(name.generation);
    if (found == keys_[name.key].end()) return "an image that nobody stored, or long gone";
    entry& e = found->second;
    e.read = true;
    if (e.failed) return "an image whose store failed";
    if (e.gone != 0 && e.gone < since) return "an image that had been replaced or forgotten";
    return nullptr;
  }

  /// Nothing is under way: drops what can never be asked for again.
  void tidy() {
    const std::lock_guard held(mutex_);
    for (auto& images : keys_)
      std::erase_if(images, [](const auto& e) { return e.second.gone != 0 || e.second.failed; });
  }
  [[nodiscard]] std::size_t size() {
    const std::lock_guard held(mutex_);
    std::size_t sum = 0;
    for (const auto& images : keys_) sum += images.size();
    return sum;
  }

 private:
  struct entry {
    moment asked = 0;     ///< its store was about to be asked for
    moment accepted = 0;  ///< 0: not known to be
    moment gone = 0;      ///< it cannot be there from this moment on; 0: it may be
    bool failed = false;
    bool read = false;
  };

  void end(entry& e, moment since) {
    if (e.gone == 0 && e.accepted != 0 && e.accepted < since) e.gone = ++now_;
  }
  bool over(image_name name, bool well) {
    const std::lock_guard held(mutex_);
    entry& e = keys_[name.key][name.generation];
    if (well) return true;
    e.failed = true;
    return !e.read;
  }

  std::mutex mutex_;
  moment now_ = 0;
  std::uint32_t generations_ = 0;
  std::vector<std::unordered_map<std::uint32_t, entry>> keys_;
};

}  // namespace cairn::stress
