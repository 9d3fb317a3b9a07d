/* A plain MPI program: barrier, ring, allreduce. Prints one line per rank, or aborts or dies as its argument says. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
	int rank, size, token = 0, sum = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Barrier(MPI_COMM_WORLD);

	if (argc > 1 && strcmp(argv[1], "abort") == 0 && rank == size - 1)
		MPI_Abort(MPI_COMM_WORLD, 7);
	if (argc > 1 && strcmp(argv[1], "die") == 0 && rank == size - 1)
		raise(SIGSEGV);

	if (rank == 0) {
		token = 1;
		if (size > 1) {
			MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
			MPI_Recv(&token, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		}
	} else {
		MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		token++;
		MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
	}
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("rank %d of %d: token %d, sum %d\n", rank, size, token, sum);
	MPI_Finalize();
	return 0;
}
