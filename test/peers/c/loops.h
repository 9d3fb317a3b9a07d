/* The loops of cmd/pgasbench in C: the same rows, displacements from the same tables, the same sizes and flushes, repeats
 * sized to the same target time, results checked at the target. Prints the CSV that `pgasbench merge` reads.
 * Environment: REPS, TARGET_MS, UPDATES (GUPS, by each process), BARRIERS, ONLY (a part of a row's name). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAXREPS = 64 };
static int reps = 5, me, peers, other, wrong;
static double target_ns = 50e6;
static const char *only = "", *api = "";
static size_t place[TABLE];

static double clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static long setting(const char *name, long usual)
{
	const char *v = getenv(name);
	return v && *v ? atol(v) : usual;
}

static int wanted(const char *row) { return strstr(row, only) != NULL; }

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void report(const char *row, const char *title, const char *unit, long n, const double *values)
{
	double v[MAXREPS];
	if (me != 0)
		return;
	memcpy(v, values, reps * sizeof *v);
	qsort(v, reps, sizeof *v, ascending);
	printf("%s,\"%s\",\"%s\",shm,%s,%.6g,%.6g,%.6g,%ld,", row, title, api, unit,
	       reps % 2 ? v[reps / 2] : (v[reps / 2 - 1] + v[reps / 2]) / 2, v[0], v[reps - 1], n);
	for (int r = 0; r < reps; r++)
		printf("%s%.6g", r ? " " : "", values[r]);
	printf("\n");
	fflush(stdout);
}

static void complain(const char *row, const char *what, uint64_t have, uint64_t want)
{
	fprintf(stderr, "%s: %s: wrong result: %llu, want %llu\n", row, what, (unsigned long long)have, (unsigned long long)want);
	wrong = 1;
}

/* ---- rows that process 0 measures alone ---- */

typedef uint64_t word_loop(uint64_t base, long n); /* operations base.. of the row; returns the sum of what it fetched */
enum check { CHECK_HOT, CHECK_COUNT, CHECK_TABLE, CHECK_BATCH, CHECK_GET };
static uint64_t batch[64];

static uint64_t put_same(uint64_t base, long n)
{
	for (long i = 0; i < n; i++) {
		uint64_t v = base + i + 1;
		peer_put8(other, HOT, &v);
		peer_flush(other);
	}
	return 0;
}
static uint64_t put_table(uint64_t base, long n)
{
	for (long i = 0; i < n; i++) {
		uint64_t v = base + i + 1;
		peer_put8(other, place[i % TABLE], &v);
		peer_flush(other);
	}
	return 0;
}
static uint64_t get_table(uint64_t base, long n)
{
	uint64_t sum = 0;
	(void)base;
	for (long i = 0; i < n; i++)
		sum += peer_get8(other, place[i % TABLE]);
	return sum;
}
static uint64_t add_hot(uint64_t base, long n)
{
	uint64_t sum = 0;
	(void)base;
	for (long i = 0; i < n; i++)
		sum += peer_fetch_add(other, HOT, 1);
	return sum;
}
static uint64_t add_batch(uint64_t base, long n)
{
	static uint64_t one = 1;
	uint64_t sum = 0;
	(void)base;
	for (long i = 0; i < n; i++) {
		peer_fetch_add_nb(other, HOT, &one, &batch[i % 64]);
		if (i % 64 == 63) {
			peer_flush(other);
			for (int j = 0; j < 64; j++)
				sum += batch[j];
		}
	}
	return sum;
}
static uint64_t swap_hot(uint64_t base, long n)
{
	uint64_t sum = 0;
	for (long i = 0; i < n; i++)
		sum += peer_compare_swap(other, HOT, base + i, base + i + 1);
	return sum;
}
/* apart lays the table of displacements out: its words lie so many bytes from each other. */
static void apart(size_t bytes)
{
	for (int i = 0; i < TABLE; i++)
		place[i] = WORDS + i * bytes;
}
static uint64_t put_batch(uint64_t base, long n)
{
	for (int i = 0; i < 64; i++)
		batch[i] = base + i + 1;
	for (long i = 0; i < n; i++) {
		peer_put8(other, place[i % TABLE], &batch[i % 64]);
		if (i % 64 == 63)
			peer_flush(other);
	}
	return 0;
}

static void check_sum(const char *row, enum check c, uint64_t base, uint64_t n, uint64_t sum)
{
	uint64_t rest = n % TABLE, want = 0;
	if (c == CHECK_COUNT)
		want = n * base + n * (n - 1) / 2;
	else if (c == CHECK_GET)
		want = n / TABLE * ((uint64_t)TABLE * (TABLE + 1) / 2) + rest * (rest + 1) / 2;
	if (sum != want)
		complain(row, "at the origin", sum, want);
}

static void check_target(const char *row, enum check c, uint64_t base, uint64_t n)
{
	uint64_t hot = *(uint64_t *)(peer_base() + HOT);
	if ((c == CHECK_HOT || c == CHECK_COUNT) && hot != base + n)
		complain(row, "at the target", hot, base + n);
	if (c != CHECK_TABLE && c != CHECK_BATCH)
		return;
	for (uint64_t j = 0; j < TABLE && j < n; j++) {
		uint64_t last = j + (n - 1 - j) / TABLE * TABLE, have = *(uint64_t *)(peer_base() + place[j]);
		uint64_t want = base + (c == CHECK_BATCH ? last % 64 : last) + 1;
		if (have != want) {
			complain(row, "at the target", have, want);
			return;
		}
	}
}

/* told are two words through which process 0 tells the target what the last loop was. */
static void tell(uint64_t base, uint64_t n)
{
	uint64_t v[2] = {base, n};
	peer_put(other, FLAGS + 1024, v, sizeof v);
	peer_flush(other);
}

static void words(const char *row, const char *title, const char *unit, long step, word_loop *loop, enum check c)
{
	double v[MAXREPS], t;
	uint64_t base = 0, last = 0, *told = (uint64_t *)(peer_base() + FLAGS + 1024);
	long n = step;
	if (!wanted(row))
		return;
	memset(peer_base() + WORDS, 0, FLAGS - WORDS);
	for (int i = 0; c == CHECK_GET && i < TABLE; i++)
		*(uint64_t *)(peer_base() + place[i]) = i + 1;
	peer_flush_all();
	peer_barrier();
	if (me == 0) {
		for (int r = -64; r < reps; r++) { /* below 0: calibration */
			t = clock_ns();
			uint64_t sum = loop(base, n);
			peer_flush(other);
			t = clock_ns() - t;
			check_sum(row, c, base, n, sum);
			last = base, base += n;
			if (r >= 0)
				v[r] = unit[0] == 'M' ? n / t * 1e3 : t / n;
			else if (t > target_ns / 4)
				n = (long)(n * target_ns / t) / step * step, n = n < step ? step : n, r = -1;
			else
				n *= 2, r = -64;
		}
		tell(last, n);
	}
	peer_barrier();
	if (me == other)
		check_target(row, c, told[0], told[1]);
	peer_barrier();
	report(row, title, unit, n, v);
}

static unsigned char pattern(size_t i) { return (unsigned char)(i ^ (i >> 8) * 7 ^ (i >> 16) * 31 ^ 1); }

static void blocks(const char *row, const char *op, size_t bytes, int window, int hot, char *priv)
{
	double v[MAXREPS], t;
	long n = window;
	char title[64];
	int get = op[0] == 'g';
	size_t at[64], end = hot ? bytes : (size_t)window * bytes;
	if (!wanted(row))
		return;
	for (int w = 0; w < window; w++)
		at[w] = hot ? 0 : w * bytes;
	char *source = get ? peer_base() : priv, *sink = get ? priv : peer_base();
	if (me == (get ? 0 : other))
		memset(sink, 0, end);
	for (size_t i = 0; i < end && me == (get ? other : 0); i++)
		source[i] = (char)pattern(i);
	peer_flush_all();
	peer_barrier();
	if (me == 0)
		for (int r = -64; r < reps; r++) {
			t = clock_ns();
			for (long i = 0; i < n; i += window) {
				for (int w = 0; w < window; w++)
					if (get)
						peer_get(other, at[w], priv + at[w], bytes);
					else
						peer_put(other, at[w], priv + at[w], bytes);
				peer_flush(other);
			}
			t = clock_ns() - t;
			if (r >= 0)
				v[r] = n * (double)bytes / t * 1e3;
			else if (t > target_ns / 4)
				n = (long)(n * target_ns / t) / window * window, n = n < window ? window : n, r = -1;
			else
				n *= 2, r = -64;
		}
	peer_barrier();
	for (size_t i = 0; i < end && me == (get ? 0 : other); i++)
		if ((unsigned char)sink[i] != pattern(i)) {
			complain(row, "data", (unsigned char)sink[i], pattern(i));
			break;
		}
	peer_barrier();
	snprintf(title, sizeof title, "%s of %zu bytes", op, bytes);
	report(row, title, "MB/s", n, v);
}

/* ---- rows of both processes ---- */

static void to_seen(long rounds)
{
	const char *row = "put_to_seen";
	double v[MAXREPS], t;
	uint64_t seq = 0, spins = 0;
	volatile uint64_t *mine = (volatile uint64_t *)(peer_base() + FLAGS + 128 * me);
	size_t theirs = FLAGS + 128 * (1 - me);
	if (!wanted(row))
		return;
	*mine = 0;
	peer_flush_all();
	for (int r = -1; r < reps; r++) {
		peer_barrier();
		t = clock_ns();
		for (long i = 0; i < rounds; i++) {
			seq++;
			for (int half = 0; half < 2; half++)
				if (half == me) {
					peer_put8(1 - me, theirs, &seq);
					peer_flush(1 - me);
				} else
					while (*mine != seq) {
						__builtin_ia32_pause();
						if (++spins % 256 == 0)
							peer_progress();
					}
		}
		t = clock_ns() - t;
		if (r >= 0)
			v[r] = t / rounds / 2;
	}
	if (*mine != seq)
		complain(row, "flag", *mine, seq);
	peer_barrier();
	report(row, "8 B put to seen, one way", "ns", 2 * rounds, v);
}

static void contended(long n)
{
	const char *row = "fetch_add_contended";
	double v[MAXREPS], t;
	if (!wanted(row))
		return;
	*(uint64_t *)(peer_base() + HOT) = 0;
	peer_flush_all();
	for (int r = -1; r < reps; r++) {
		peer_barrier();
		t = clock_ns();
		for (long i = 0; i < n; i++)
			peer_fetch_add(0, HOT, 1);
		peer_barrier();
		if (r >= 0)
			v[r] = (clock_ns() - t) / (2 * n);
	}
	uint64_t want = 2ull * n * (reps + 1), have = *(uint64_t *)(peer_base() + HOT);
	if (me == 0 && have != want)
		complain(row, "at the target", have, want);
	report(row, "64-bit fetch-add, contended", "ns", 2 * n, v);
}

static void barrier(long rounds)
{
	double v[MAXREPS], t;
	if (!wanted("barrier"))
		return;
	for (long i = 0; i < rounds / 10 + 1; i++)
		peer_barrier();
	for (int r = 0; r < reps; r++) {
		t = clock_ns();
		for (long i = 0; i < rounds; i++)
			peer_barrier();
		v[r] = (clock_ns() - t) / rounds;
	}
	report("barrier", "barrier of all ranks", "ns", rounds, v);
}

#ifdef PEER_COLLECTIVES
#include "collect.h"
#else
static void collect(long barriers) { (void)barriers; } /* plain C has none */
#endif

static uint64_t next(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static void gups(long n)
{
	const uint64_t each = SPAN / 8 / 2;
	double v[MAXREPS], t;
	uint64_t seed = 0x9e3779b97f4a7c15ull, s = seed * (me + 1), bad = 0, *part = (uint64_t *)peer_base();
	static uint64_t vals[64];
	if (!wanted("gups"))
		return;
	memset(part, 0, each * 8);
	peer_flush_all();
	for (int r = -1; r < reps; r++) {
		peer_barrier();
		t = clock_ns();
		for (long i = 0; i < n; i++) {
			uint64_t g = (vals[i % 64] = next(&s)) & (2 * each - 1);
			peer_xor((int)(g / each), g % each * 8, &vals[i % 64]);
			if (i % 64 == 63)
				peer_flush_all();
		}
		peer_flush_all();
		peer_barrier();
		if (r >= 0)
			v[r] = 2 * n / (clock_ns() - t) * 1e3;
	}
	for (int from = 0; from < 2; from++) {
		s = seed * (from + 1);
		for (long i = 0; i < n * (reps + 1); i++) {
			uint64_t x = next(&s), g = x & (2 * each - 1);
			if ((int)(g / each) == me)
				part[g % each] ^= x;
		}
	}
	for (uint64_t i = 0; i < each; i++)
		bad += part[i] != 0;
	if (bad)
		complain("gups", "words of the table", bad, 0);
	peer_barrier();
	report("gups", "GUPS", "M/s", 2 * n, v);
}

static int run_all(const char *what)
{
	static const struct {
		const char *suffix;
		size_t bytes;
		int window;
	} sizes[] = {{"64", 64, 64}, {"4K", 4 << 10, 64}, {"64K", 64 << 10, 64}, {"1M", 1 << 20, 16}, {"16M", 16 << 20, 4}};
	const long rounds = setting("BARRIERS", 20000);
	char *priv, row[32];
	api = what, me = peer_rank(), peers = peer_size(), other = peers > 1;
	reps = (int)setting("REPS", reps), target_ns = setting("TARGET_MS", 50) * 1e6;
	if (reps < 1 || reps > MAXREPS)
		return fprintf(stderr, "REPS: want 1 to %d\n", MAXREPS), 2;
	if (getenv("ONLY"))
		only = getenv("ONLY");
	apart(64);
	memset(peer_base(), 0, PART);
	if (posix_memalign((void **)&priv, 4096, SPAN))
		return perror("private buffer"), 2;
	memset(priv, 0, SPAN);
	peer_barrier();
	for (size_t at = 0; at < PART; at += 4096) /* this process's own mapping of the other's pages */
		if (peer_get8(other, at) != 0)
			return fprintf(stderr, "new memory is not zero\n"), 2;
	if (me == 0)
		printf("row,title,api,transport,unit,median,min,max,n,values\n"), fflush(stdout);
	peer_barrier();
	barrier(peers > 2 ? rounds / 8 + 1 : rounds);
	collect(peers > 2 ? rounds / 8 + 1 : rounds);
	if (peers != 2)
		return wrong;
	words("put8_same", "8 B put + flush, same word", "ns", 100, put_same, CHECK_HOT);
	words("put8_table", "8 B put + flush, 4096 words", "ns", 100, put_table, CHECK_TABLE);
	words("get8", "8 B get", "ns", 100, get_table, CHECK_GET);
	words("fetch_add", "64-bit fetch-add", "ns", 100, add_hot, CHECK_COUNT);
	words("compare_swap", "64-bit compare-swap", "ns", 100, swap_hot, CHECK_COUNT);
	words("fetch_add_batch", "64-bit fetch-adds, 64 at a time", "ns", 64, add_batch, CHECK_COUNT);
	words("fetch_add_rate", "64-bit fetch-adds, 64 at a time", "M/s", 64, add_batch, CHECK_COUNT);
	words("put8_batch", "8 B puts, flush every 64", "ns", 64, put_batch, CHECK_BATCH);
	words("put8_rate", "8 B puts, flush every 64", "M/s", 64, put_batch, CHECK_BATCH);
	apart(8);
	words("put8_near", "8 B puts side by side, flush every 64", "ns", 64, put_batch, CHECK_BATCH);
	apart(64);
	to_seen(rounds);
	contended(100000);
	gups(setting("UPDATES", 500000));
	for (int hot = 0; hot < 2; hot++)
		for (int get = 0; get < 2; get++)
			for (int i = hot; i < 5; i++) {
				snprintf(row, sizeof row, "%s%s_%s", hot ? "hot" : "", get ? "get" : "put", sizes[i].suffix);
				blocks(row, get ? "get" : "put", sizes[i].bytes, sizes[i].window, hot, priv);
			}
	blocks("hotput_1M_flush", "put", 1 << 20, 1, 1, priv);
	free(priv);
	return wrong;
}
