/* sim_memory.h: the memory of one virtual process.
 *
 * kill -9 runs no destructor. So that a crashed broker leaks nothing, whatever a process allocates
 * is chained to its sim_memory and given back in one sweep when it dies. The linker replaces
 * malloc and friends (--wrap, see CMakeLists.txt) for everything linked statically; what runs
 * outside a process, and the rig's own sim_alloc(), is chained to nothing.
 *
 * The pool in force is static because malloc has no context argument; the simulator is
 * single-threaded, and machine.c alone switches it.                                            */
#ifndef MOONMQ_SIM_MEMORY_H
#define MOONMQ_SIM_MEMORY_H

#include <stddef.h>
#include <stdint.h>

struct sim_memory_block;

struct sim_memory {
    struct sim_memory_block *first;
    size_t bytes; /* allocated now: a bound for I22 */
};

/* An empty pool. The JSON library's memory is charged from here on, too. */
void sim_memory_init(struct sim_memory *memory);
/* The pool that malloc charges from here on (NULL: none). Returns the one before. */
struct sim_memory *sim_memory_use(struct sim_memory *memory);
/* Frees every block still charged to `memory`. */
void sim_memory_sweep(struct sim_memory *memory);

#endif
