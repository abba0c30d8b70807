// The staging ring's places: how they are claimed, sent and given back.
#include "runtime/hip_staging.hpp"

#include <cstring>

#include "kernels/scatter_gather_hip.hpp"

namespace cairn::detail {
namespace {

error no_staging(const char* what, status code, const hip_health& health) {
  const std::string lost = health.cause();
  return {code, std::string("no staging memory: ") + what + (lost.empty() ? "" : ": ") + lost};
}

/// Of a place's word that the caller holds: nobody else changes it.
std::uint32_t flights_of(const sync::atomic<std::uint32_t>& word, std::uint32_t mask) noexcept {
  return word.load_relaxed() & ~mask;  // relaxed: the holder's own
}

}  // namespace

result<std::unique_ptr<hip_staging>> hip_staging::open(hip_health& health) {
  constexpr std::size_t bytes = std::size_t{places} * place_words * sizeof(std::uint32_t);
  std::unique_ptr<hip_staging> made(new hip_staging(health));
  void* memory = nullptr;
  if (const status code =
          health.judge("hipHostMalloc", hipHostMalloc(&memory, bytes + kernels::board_bytes,
                                                      hipHostMallocPortable | hipHostMallocMapped));
      code != status::ok)
    return no_staging("pinned memory was refused", code, health);
  made->pinned_ = static_cast<std::uint32_t*>(memory);
  std::memset(static_cast<std::byte*>(memory) + bytes, 0, kernels::board_bytes);
  if (const status code = health.judge("hipMalloc", hipMalloc(&memory, bytes)); code != status::ok)
    return no_staging("device memory was refused", code, health);
  made->device_ = static_cast<std::uint32_t*>(memory);
  for (hipEvent_t& each : made->events_)
    if (const status code = health.judge("hipEventCreateWithFlags",
                                         hipEventCreateWithFlags(&each, hipEventDisableTiming));
        code != status::ok)
      return no_staging("an event was refused", code, health);
  return made;
}

hip_staging::~hip_staging() {
  if (abandoned_) return;
  for (const hipEvent_t each : events_)
    if (each != nullptr)
      judge_when_allowed(health_, "hipEventDestroy", [&] { return hipEventDestroy(each); });
  if (device_ != nullptr) judge_when_allowed(health_, "hipFree", [&] { return hipFree(device_); });
  if (pinned_ != nullptr)
    judge_when_allowed(health_, "hipHostFree", [&] { return hipHostFree(pinned_); });
}

// A place that is free, or whose last batch is over.
bool hip_staging::take(std::uint32_t place) noexcept {
  std::uint32_t seen = words_[place].load_acquire();  // (1) acquire: pairs with (2)
  const std::uint32_t state = seen & state_mask;
  if (state == taken_place) return false;
  if (state == flying_place &&
      (health_.lost() || state_of(events_[place], health_) != event_state::fired))
    return false;
  // (1) acquire: pairs with (2). Fails when another thread was faster, also by a whole flight.
  return words_[place].cas_acquire(seen, (seen & ~state_mask) | taken_place);
}

status hip_staging::claim(copy_kind kind, std::uint32_t count,
                          std::array<std::uint32_t, places>& taken) noexcept {
  const std::uint32_t within = places_for(kind);
  sync::atomic<std::uint32_t>& next = next_[static_cast<unsigned>(kind)];
  const std::uint32_t first = next.load_relaxed();  // relaxed: a hint
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < within && found < count; ++i) {
    const std::uint32_t place = (first + i) % within;
    if (take(place)) taken[found++] = place;
  }
  if (found == count) {
    next.store_relaxed((taken[count - 1] + 1) % within);  // relaxed: a hint
    return status::ok;
  }
  for (std::uint32_t i = 0; i < found; ++i) give(taken[i]);
  return health_.lost() ? status::device_lost : status::queue_full;
}

status hip_staging::send(std::uint32_t place, std::size_t count, hipStream_t on) noexcept {
  return health_.judge("hipMemcpyAsync",
                       hipMemcpyAsync(device_ + std::size_t{place} * place_words, words(place),
                                      count * sizeof(std::uint32_t), hipMemcpyHostToDevice, on));
}

void hip_staging::fly(std::uint32_t place, hipStream_t on, hip_debts& debts) noexcept {
  if (health_.lost() ||
      health_.judge("hipEventRecord", hipEventRecord(events_[place], on)) != status::ok)
    return debts.add(place);
  const std::uint32_t one = sync::mutated("flight not counted") ? 0 : one_flight;
  const std::uint32_t flights = flights_of(words_[place], state_mask);
  users_[place].store_relaxed(on);                              // relaxed: published by (2)
  words_[place].store_release((flights + one) | flying_place);  // (2) release: pairs with (1)
}

void hip_staging::settle(hip_debts& debts, hipStream_t on) noexcept {
  const std::uint32_t owed = debts.take();
  for (std::uint32_t place = 0; place < places; ++place)
    if ((owed >> place & 1) != 0) fly(place, on, debts);
}

void hip_staging::forgive(hip_debts& debts, hipStream_t on) noexcept {
  const std::uint32_t owed = debts.take();
  for (std::uint32_t place = 0; place < places; ++place) {
    if ((owed >> place & 1) != 0) {
      give(place);
      continue;
    }
    std::uint32_t seen = words_[place].load_acquire();  // (1) acquire: pairs with (2)
    // Relaxed: written before (2). A later flight's user is another stream, and not mistaken.
    if ((seen & state_mask) != flying_place || users_[place].load_relaxed() != on) continue;
    // (2) release: pairs with (1). Fails when another thread has found the place and taken it.
    static_cast<void>(words_[place].cas_release(seen, (seen & ~state_mask) | free_place));
  }
}

void hip_staging::give(std::uint32_t place) noexcept {
  const std::uint32_t flights = flights_of(words_[place], state_mask);
  words_[place].store_release(flights | free_place);  // (2) release: pairs with (1)
}

}  // namespace cairn::detail
