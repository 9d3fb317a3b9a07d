/* The rows of collectives, as cmd/pgasbench/collect.go has them: calls one behind the other, every element looked at in the end. loops.h includes it. */

enum call { ALLREDUCE, BROADCAST, ALLGATHER, ALLTOALL };

static double given(long rank, long i) { return (double)(rank * 10 + i % 7); }

/* wanted_of is element i of what the last call of c has to bring. */
static double wanted_of(enum call c, long n, long i)
{
	double sum = 0;
	long last = peers - 1;
	switch (c) {
	case ALLREDUCE:
		for (int r = 0; r < peers; r++)
			sum += given(r, i);
		return sum;
	case BROADCAST:
		return given(me == last ? last - 1 : last, i);
	case ALLGATHER:
		return given(i / n, i % n);
	default:
		return given(i / n, me * n + i % n);
	}
}

static void collect_row(enum call c, const char *row, const char *title, size_t bytes, long barriers)
{
	long n = (long)bytes / 8, rounds = (barriers / (2 + (long)(bytes >> 9)) / peers + 2) * peers;
	double v[MAXREPS], t;
	if (!wanted(row))
		return;
	double *src = peer_room(n * peers), *dst = peer_room(n * peers);
	for (long i = 0; i < n * peers; i++)
		src[i] = given(me, i);
	peer_barrier();
	for (int r = -1; r < reps; r++) {
		peer_barrier();
		t = clock_ns();
		for (long i = 0; i < rounds; i++)
			switch (c) {
			case ALLREDUCE:
				peer_allreduce(dst, src, n, i);
				break;
			case BROADCAST:
				peer_broadcast(dst, src, n, (int)(i % peers), i);
				break;
			case ALLGATHER:
				peer_allgather(dst, src, n, i);
				break;
			case ALLTOALL:
				peer_alltoall(dst, src, n, i);
			}
		peer_barrier();
		if (r >= 0)
			v[r] = (clock_ns() - t) / rounds;
	}
	for (long i = 0; i < (c == ALLREDUCE || c == BROADCAST ? n : n * peers); i++)
		if (dst[i] != wanted_of(c, n, i)) {
			complain(row, "an element", (uint64_t)dst[i], (uint64_t)wanted_of(c, n, i));
			break;
		}
	report(row, title, "ns", rounds, v);
}

static void collect(long barriers)
{
	static const struct {
		const char *suffix;
		size_t bytes;
	} sizes[] = {{"8", 8}, {"8K", 8 << 10}, {"1M", 1 << 20}};
	static const char *names[] = {"allreduce", "broadcast", "allgather", "alltoall"};
	char row[32];
	for (int c = 0; c < PEER_COLLECTIVES; c++)
		for (int i = 0; i < 3; i++) {
			snprintf(row, sizeof row, "coll_%s_%s", names[c], sizes[i].suffix);
			collect_row((enum call)c, row, names[c], sizes[i].bytes, barriers);
		}
}
