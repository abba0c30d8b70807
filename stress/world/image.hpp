// Bytes that say whose they are: a function of key, generation, rank and offset, from which key and
// generation can be read back. So wrong, stale and torn images are told apart. Knows nothing of
// where they lie.
//
// Each 8-byte word of an image's stream is its name (key, generation, and a check over both) plus a
// number that depends on rank and place; subtracting that number again shows the name, or nothing
// that could be one. What was taken from the wrong offset or rank shows no name either.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cairn::stress {

/// One store's image. Key numbers fit 20 bits, generations 28 (from 1).
struct image_name {
  std::uint32_t key = 0;
  std::uint32_t generation = 0;
  friend bool operator==(const image_name&, const image_name&) = default;
};

enum class verdict : std::uint8_t {
  right,
  stale,    ///< another generation of the same key, whole
  foreign,  ///< another key, whole
  torn,     ///< parts of several images
  garbage,  ///< no image's bytes are among them
};

inline const char* to_string(verdict v) noexcept {
  constexpr const char* names[] = {"right", "stale", "foreign", "torn", "garbage"};
  return names[static_cast<std::size_t>(v)];
}

inline constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// A run of an image's stream as it lies somewhere: `bytes` from `offset` of the stream on.
class image_stream {
 public:
  /// `salt` keeps apart what must not be mistaken for one another, ranks above all.
  explicit constexpr image_stream(std::uint64_t salt) noexcept : salt_(salt) {}

  void write(std::byte* to, std::uint64_t offset, std::uint64_t bytes,
             image_name name) const noexcept {
    const std::uint64_t tag = pack(name);
    for_each_word(offset, bytes,
                  [&](std::uint64_t index, std::uint64_t at, std::uint64_t skip, std::uint64_t n) {
                    const std::uint64_t word = tag + noise(index);
                    std::memcpy(to + at, reinterpret_cast<const std::byte*>(&word) + skip, n);
                  });
  }

  /// What a walk over an image has seen so far; one may be fed run by run.
  struct reading {
    image_name first;           ///< name of the first whole word that had one
    bool named = false;         ///< there was one
    bool torn = false;          ///< then there was another
    std::uint64_t odd = ~0ULL;  ///< offset of the first byte that belongs to no name, or to another
  };

  void read(const std::byte* from, std::uint64_t offset, std::uint64_t bytes,
            reading& seen) const noexcept {
    for_each_word(
        offset, bytes,
        [&](std::uint64_t index, std::uint64_t at, std::uint64_t skip, std::uint64_t n) {
          if (n == 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, from + at, 8);
            image_name name;
            if (!unpack(word - noise(index), name)) {
              seen.odd = std::min(seen.odd, offset + at);
            } else if (!seen.named) {
              seen.named = true;
              seen.first = name;
            } else if (name != seen.first) {
              seen.torn = true;
              seen.odd = std::min(seen.odd, offset + at);
            }
            return;
          }
          // A word cut short by the end of a piece can only be compared.
          if (!seen.named) return;
          const std::uint64_t word = pack(seen.first) + noise(index);
          if (std::memcmp(from + at, reinterpret_cast<const std::byte*>(&word) + skip, n) != 0)
            seen.odd = std::min(seen.odd, offset + at);
        });
  }

 private:
  static constexpr std::uint64_t check_of(std::uint64_t name) noexcept {
    return mixed(name + 0x51ed2701) & 0xffff;
  }
  static constexpr std::uint64_t pack(image_name n) noexcept {
    const std::uint64_t name = std::uint64_t{n.key} << 28 | n.generation;
    return name << 16 | check_of(name);
  }
  static constexpr bool unpack(std::uint64_t tag, image_name& n) noexcept {
    const std::uint64_t name = tag >> 16;
    if (check_of(name) != (tag & 0xffff)) return false;
    n = {static_cast<std::uint32_t>(name >> 28),
         static_cast<std::uint32_t>(name & ((1U << 28) - 1))};
    return true;
  }
  [[nodiscard]] constexpr std::uint64_t noise(std::uint64_t index) const noexcept {
    return mixed(salt_ * 0x9e3779b97f4a7c15ULL + index);
  }

  /// f(word's index in the stream, where it lies in the run, bytes skipped of it, bytes of it here)
  template <class F>
  static void for_each_word(std::uint64_t offset, std::uint64_t bytes, F&& f) {
    for (std::uint64_t at = 0; at < bytes;) {
      const std::uint64_t skip = (offset + at) % 8;
      const std::uint64_t n = std::min<std::uint64_t>(8 - skip, bytes - at);
      f((offset + at) / 8, at, skip, n);
      at += n;
    }
  }

  std::uint64_t salt_;
};

/// What a reading means to somebody who expects `key`, in any generation.
inline verdict judge(const image_stream::reading& seen, std::uint32_t key) noexcept {
  if (!seen.named) return verdict::garbage;
  if (seen.torn || seen.odd != ~0ULL) return verdict::torn;
  return seen.first.key == key ? verdict::right : verdict::foreign;
}

}  // namespace cairn::stress
