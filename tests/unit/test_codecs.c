/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * codecs/: every codec gives back what it was given, says exactly how much room it needs, and takes
 * any bytes. All buffers end where the memory does: a byte read or written behind them is a fault.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codecs/codec.h"
#include "tests/unit/fixture.h"

#define MOST      (UINT32_C(1) << 20)
#define SMALL     300u
#define KINDS     6u
#define FILL_BYTE 0xA5

/* Memory of `size` bytes before a page that cannot be touched. */
struct edge {
    uint8_t *map;
    size_t length; /* of what can */
};

static struct edge edge_open(size_t most) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), length = (most + page - 1) / page * page;
    uint8_t *map =
        mmap(NULL, length + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(map, MAP_FAILED);
    ck_assert_int_eq(mprotect(map + length, page, PROT_NONE), 0);
    return (struct edge){map, length};
}
static uint8_t *edge_of(const struct edge *edge, size_t size) {
    return edge->map + edge->length - size;
}
static void edge_close(const struct edge *edge) {
    munmap(edge->map, edge->length + (size_t)sysconf(_SC_PAGESIZE));
}

static struct edge plain_memory, out_memory, back_memory;
/* What a codec has made last. */
static uint8_t made[MOST + MOST / 4 + 4096];

static void setup(void) {
    plain_memory = edge_open(MOST);
    out_memory = edge_open(sizeof(made));
    back_memory = edge_open(MOST);
}

static void teardown(void) {
    edge_close(&plain_memory);
    edge_close(&out_memory);
    edge_close(&back_memory);
}

static const struct codec *codec_at(int i) {
    return codec_registry[i];
}
#define CODEC_COUNT 5

static struct codec_workspace *workspace_open(const struct codec *codec, int level) {
    struct codec_workspace *workspace;

    ck_assert_int_eq(codec->open(level, MOST, &workspace), 0);
    return workspace;
}

/* Zeros, noise, words, a ramp, one word over and over, and all of these one after the other. */
static void fill(uint8_t *bytes, uint32_t length, unsigned kind, uint64_t *state) {
    static const char *const words[] = {"inode ", "block ", "static int ", "return ", "cluster;\n"};

    for (uint32_t i = 0; i < length;) {
        unsigned now = kind == 5 ? i / 3000 % 5 : kind;
        const char *word = words[now == 4 ? 0 : fixture_random(state) % 5];
        uint32_t count = now == 2 || now == 4 ? (uint32_t)strlen(word) : 1;
        for (uint32_t k = 0; k < count && i < length; k++, i++)
            bytes[i] = now == 0   ? 0
                       : now == 1 ? (uint8_t)fixture_random(state)
                       : now == 3 ? (uint8_t)(i / 7)
                                  : (uint8_t)word[k];
    }
}

/* Exactly as many bytes as were made are room enough. */
static void expect_room(const struct codec *codec, struct codec_workspace *workspace,
                        const uint8_t *plain, uint32_t length, uint32_t size) {
    for (uint32_t room = 0; room < size; room += size / 3 + 1)
        ck_assert_int_eq(
            codec->compress(workspace, plain, length, edge_of(&out_memory, room), room), -ENOSPC);
    if (size > 0)
        ck_assert_int_eq(
            codec->compress(workspace, plain, length, edge_of(&out_memory, size - 1), size - 1),
            -ENOSPC);
    ck_assert_int_eq(codec->compress(workspace, plain, length, edge_of(&out_memory, size), size),
                     size);
    ck_assert_int_eq(memcmp(edge_of(&out_memory, size), made, size), 0);
}

/* What decompression to `length` bytes says of the first `size` bytes made. */
static int result_of(const struct codec *codec, struct codec_workspace *workspace, uint32_t size,
                     uint32_t length) {
    uint8_t *stored = memcpy(edge_of(&out_memory, size), made, size);
    uint8_t *back = edge_of(&back_memory, length);

    if (length < MOST)
        back[-1] = FILL_BYTE;
    int result = codec->decompress(workspace, stored, size, back, length);
    if (length < MOST)
        ck_assert_uint_eq(back[-1], FILL_BYTE);
    return result;
}

/* The bytes stand for `length` ones and for no others, and neither without their last one nor with
 * one more. */
static void expect_exact(const struct codec *codec, struct codec_workspace *workspace,
                         const uint8_t *plain, uint32_t length, uint32_t size) {
    ck_assert_int_eq(result_of(codec, workspace, size, length), 0);
    ck_assert_int_eq(memcmp(edge_of(&back_memory, length), plain, length), 0);
    if (length > 0)
        ck_assert_int_eq(result_of(codec, workspace, size, length - 1), -EUCLEAN);
    if (length < MOST)
        ck_assert_int_eq(result_of(codec, workspace, size, length + 1), -EUCLEAN);
    for (uint32_t cut = 1; cut <= size && cut < SMALL; cut++)
        ck_assert_int_eq(result_of(codec, workspace, size - cut, length), -EUCLEAN);
    made[size] = 0;
    ck_assert_int_eq(result_of(codec, workspace, size + 1, length), -EUCLEAN);
}

static void round_trip(const struct codec *codec, struct codec_workspace *workspace,
                       uint32_t length, unsigned kind, uint64_t *state) {
    uint8_t *plain = edge_of(&plain_memory, length);
    uint32_t bound = codec->bound(length);

    fill(plain, length, kind, state);
    int64_t size = codec->compress(workspace, plain, length, edge_of(&out_memory, bound), bound);
    ck_assert_int_ge(size, 0);
    ck_assert_int_le(size, bound);
    memcpy(made, edge_of(&out_memory, bound), (size_t)size);
    expect_room(codec, workspace, plain, length, (uint32_t)size);
    expect_exact(codec, workspace, plain, length, (uint32_t)size);
}

START_TEST(gives_back) {
    static const uint32_t sizes[] = {63,    64,    65,    255,   256,   257,   511,
                                     1000,  4095,  4096,  4097,  8192,  10000, 16384,
                                     32767, 32768, 49152, 65535, 65536, 65537, 200000};
    const struct codec *codec = codec_at(_i);
    uint64_t state = fixture_seed("gives_back");
    struct codec_workspace *workspace = workspace_open(codec, codec->level);

    for (unsigned kind = 0; kind < KINDS; kind++) {
        for (uint32_t length = 0; length < 70; length++)
            round_trip(codec, workspace, length, kind, &state);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
            round_trip(codec, workspace, sizes[i], kind, &state);
        for (unsigned i = 0; i < 6 * fixture_factor(); i++)
            round_trip(codec, workspace, (uint32_t)(fixture_random(&state) % 65537), kind, &state);
    }
    round_trip(codec, workspace, MOST, KINDS - 1, &state);
    codec->close(workspace);
}
END_TEST

/* What any level makes, the default level's workspace reads. */
START_TEST(levels) {
    const struct codec *codec = codec_at(_i);
    uint64_t state = fixture_seed("levels");
    struct codec_workspace *reader = workspace_open(codec, codec->level), *none = NULL;
    uint8_t *plain = edge_of(&plain_memory, 65536), *back = edge_of(&back_memory, 65536);
    uint32_t bound = codec->bound(65536);
    uint8_t *out = edge_of(&out_memory, bound);

    for (int level = codec->level_min; level <= codec->level_max; level++) {
        struct codec_workspace *writer = workspace_open(codec, level);
        for (unsigned kind = 0; kind < KINDS; kind++) {
            fill(plain, 65536, kind, &state);
            int64_t size = codec->compress(writer, plain, 65536, out, bound);
            ck_assert_int_ge(size, 0);
            ck_assert_int_eq(codec->decompress(reader, out, (uint32_t)size, back, 65536), 0);
            ck_assert_int_eq(memcmp(plain, back, 65536), 0);
        }
        codec->close(writer);
    }
    ck_assert_int_eq(codec->open(codec->level_min - 1, MOST, &none), -EINVAL);
    ck_assert_int_eq(codec->open(codec->level_max + 1, MOST, &none), -EINVAL);
    ck_assert_int_eq(codec->open(codec->level, CODEC_PLAIN_MAX + 1, &none), -EINVAL);
    ck_assert_int_eq(codec->compress(reader, plain, MOST + 1, out, bound), -EINVAL);
    ck_assert_int_eq(codec->decompress(reader, out, 10, back, MOST + 1), -EINVAL);
    codec->close(reader);
    codec->close(NULL);
}
END_TEST

/* What a workspace has seen before does not show. */
START_TEST(no_memory) {
    const struct codec *codec = codec_at(_i);
    uint64_t state = fixture_seed("no_memory");
    struct codec_workspace *used = workspace_open(codec, codec->level);
    uint8_t *plain = edge_of(&plain_memory, 65536), *back = edge_of(&back_memory, 65536);
    uint32_t bound = codec->bound(65536);
    uint8_t *out = edge_of(&out_memory, bound);

    for (unsigned i = 0; i < 60 * fixture_factor(); i++) {
        uint32_t length = (uint32_t)(fixture_random(&state) % 65537);
        fill(plain, length, i % KINDS, &state);
        struct codec_workspace *fresh = workspace_open(codec, codec->level);
        int64_t size = codec->compress(fresh, plain, length, made, sizeof(made));
        codec->close(fresh);
        ck_assert_int_eq(codec->compress(used, plain, length, out, bound), size);
        ck_assert_int_eq(memcmp(made, out, (size_t)size), 0);
        if (size > 2) /* and one that ends in the middle */
            (void)codec->compress(used, plain, length, out, (uint32_t)size / 2);
        (void)codec->decompress(used, made, (uint32_t)size / 2, back, length);
    }
    codec->close(used);
}
END_TEST

/* Noise, sound streams of which bits have changed, and such of which parts have gone or come. */
static uint32_t spoil(uint8_t *bytes, uint32_t size, uint32_t room, uint64_t *state) {
    uint64_t way = fixture_random(state) % 4;
    uint32_t at = size ? (uint32_t)(fixture_random(state) % size) : 0;

    if (way == 0)
        for (uint32_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)fixture_random(state);
    else if (way == 1 && size > 0)
        size = at;
    else if (way == 2 && size < room)
        bytes[size++] = (uint8_t)fixture_random(state);
    for (unsigned i = 0; size > 0 && i < 1 + fixture_random(state) % 4; i++)
        bytes[fixture_random(state) % size] ^= (uint8_t)(1u << fixture_random(state) % 8);
    return size;
}

START_TEST(hostile) {
    const struct codec *codec = codec_at(_i);
    uint64_t state = fixture_seed("hostile");
    struct codec_workspace *workspace = workspace_open(codec, codec->level);

    for (unsigned i = 0; i < 4000 * fixture_factor(); i++) {
        uint32_t length = (uint32_t)(fixture_random(&state) % (i % 10 ? 3000 : 65537));
        uint8_t *plain = edge_of(&plain_memory, length);
        fill(plain, length, i % KINDS, &state);
        int64_t size = codec->compress(workspace, plain, length, made, sizeof(made));
        ck_assert_int_ge(size, 0);
        uint32_t spoilt = spoil(made, (uint32_t)size, (uint32_t)size + 1, &state);
        uint8_t *stored = memcpy(edge_of(&out_memory, spoilt), made, spoilt);
        int result =
            codec->decompress(workspace, stored, spoilt, edge_of(&back_memory, length), length);
        ck_assert(result == 0 || result == -EUCLEAN);
    }
    codec->close(workspace);
}
END_TEST

START_TEST(names) {
    for (int i = 0; i < CODEC_COUNT; i++)
        ck_assert_ptr_eq(codec_find(codec_at(i)->name), codec_at(i));
    ck_assert_ptr_null(codec_at(CODEC_COUNT));
    ck_assert_ptr_null(codec_find("lzo"));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("codecs");
    TCase *tests = tcase_create("codecs");

    tcase_set_timeout(tests, 60 * (double)fixture_factor());
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, names);
    tcase_add_loop_test(tests, gives_back, 0, CODEC_COUNT);
    tcase_add_loop_test(tests, levels, 0, CODEC_COUNT);
    tcase_add_loop_test(tests, no_memory, 0, CODEC_COUNT);
    tcase_add_loop_test(tests, hostile, 0, CODEC_COUNT);
    suite_add_tcase(suite, tests);
    return fixture_run(suite);
}
