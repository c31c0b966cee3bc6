/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the files of the emulated driver share. Structs are plain; each field says who writes
 * it. */

#include "kfdsim/driver/sim.h"
#include "kfdsim/timing/timing.h"

#define SIM_QUEUES_MAX 1024U /* queue ids of a process: KFD_MAX_NUM_OF_QUEUES_PER_PROCESS */
#define SIM_MASK_WORDS 32U   /* the ioctl clips at 1024 bits */
#define SIM_XCCS 8U
#define SIM_ENGINES 8U
#define SIM_HQDS_MAX 256U
#define SIM_DOORBELLS 1024U /* 8-byte doorbells of a process on a GPU: two pages */
#define SIM_SLICE (SIM_DOORBELLS * 8U)
#define SIM_GROUP_MAX 1024U /* threads of a work-group */

/* As the driver numbers them inside (enum kfd_queue_type): what sysfs shows. */
enum sim_queue_type { SIM_COMPUTE, SIM_SDMA, SIM_SDMA_XGMI = 4 };

/* KFD_IOCTL_MINOR_VERSION of the kernels whose driver this can be. */
#define KFD_LINUX_6_1 11U
#define KFD_LINUX_6_12 17U
#define KFD_LINUX_7_2 23U

struct sim_gpu;

struct sim_queue {
	struct sim_process *process;
	struct sim_gpu *gpu;
	unsigned id;     /* of its process */
	uint64_t serial; /* of the driver: 1 for the first ever made */
	enum sim_queue_type type;
	bool aql;
	unsigned sdma; /* which one of its pool */

	/* As the client said (queue.c). */
	uint64_t ring_base, ring_size, read_pointer, write_pointer; /* addresses; bytes */
	unsigned percentage, priority;
	uint32_t mask[SIM_MASK_WORDS]; /* as SET_CU_MASK had it */
	unsigned mask_bits;            /* 0: never masked */
	unsigned mask_changes;
	bool gws;
	bool reset; /* its GPU is gone: it can be destroyed, no more */

	/* What the hardware would have (mask.c): a word for each shader engine, by XCC. All ones
	 * where there is no mask. */
	uint32_t engines[SIM_XCCS][SIM_ENGINES];

	bool active;       /* in the run list: has a ring and a percentage, its process lives or is
			  * not torn down yet (queue.c) */
	int hqd;           /* the slot it sits in, -1: none (compute, gpu.c) */
	unsigned doorbell; /* index in its process's slice */

	/* The packet processor's (packet.c, aql.c, sdma.c). */
	uint64_t read_index;     /* packets (AQL) or bytes (SDMA) taken */
	uint64_t limit;          /* AQL: as far as packets may be taken */
	uint64_t doorbell_value; /* the doorbell as it was found last */
	uint64_t progress;       /* bytes of the copy or fill at read_index that are done */
	uint64_t began;          /* when the packet at read_index was first looked at; 0: not yet.
			       * Of one that the timing model has: when it started there */
	uint64_t active_ns;      /* when a packet last moved on */
	bool dispatched;         /* the packet at read_index was given to the timing model */
	uint64_t first_ns,
		ran_ns; /* when it was first, and how long it ran before it was taken out */
	uint64_t
		meets_ns; /* it has ended there, and its kernel waits for another until then; 0: no */
	uint64_t meets_arguments; /* of that kernel */
	bool stopped;             /* after a packet or an address that hardware would fault on */
	char note[96];            /* why it stopped, or what was skipped; empty: nothing to say */
	uint64_t packets, dispatches, copied; /* retired; bytes copied */
	struct sim_dispatch_info {            /* of the last dispatch packet */
		uint32_t grid[3], group[3];
		uint64_t kernel_object;
	} last;
	struct sim_model_ns { /* what dispatches took by the timing model */
		uint64_t last, most, all;
	} model_ns;

	struct sim_queue *next; /* of the process, newest first as list_add() has it */
};

/* A buffer of ALLOC_MEMORY_OF_GPU (memory.c). */
struct sim_buffer {
	uint64_t handle, address, size;
	uint64_t place; /* in the arena; 0: USERPTR, the client's own memory */
	uint64_t user;  /* USERPTR: where that is, not always at address */
	uint32_t flags, gpu_id;
	uint64_t mapped; /* a bit for each GPU, by index */
	struct sim_buffer *next;
};

struct sim_event {
	uint32_t id, type;
	bool auto_reset, set;
	uint32_t gpu_id; /* HW_EXCEPTION: of the GPU that went */
	struct sim_event *next;
};

#define SIM_CONTEXT_PRIMARY 0xffffU

struct sim_process {
	struct sim *sim;
	pid_t pid;
	unsigned
		context; /* SIM_CONTEXT_PRIMARY, or the number of a secondary one of CREATE_PROCESS */
	uint64_t serial;
	bool dead;        /* sim_exit() was called */
	uint64_t gone_ns; /* dead: when it is torn down */
	struct sim_queue *queues;
	unsigned n_queues;
	unsigned made, peak; /* queues ever made; most at a time */
	struct sim_buffer *buffers;
	struct sim_event *events;
	uint64_t event_page;           /* place in the arena; 0: none yet */
	uint64_t event_handle;         /* of the client's buffer that is it; 0: the driver's own */
	unsigned event_slots;          /* ids that fit into what the client has mapped of it */
	uint64_t slices[SIM_GPUS_MAX]; /* place of the doorbell slice on each GPU; 0: none yet */
	bool acquired[SIM_GPUS_MAX];   /* ACQUIRE_VM was called */
	int drm_files[SIM_GPUS_MAX];   /* with this one, as world.file_keep() has it */
	uint32_t handles;              /* of buffers: the last one's low half */
	bool runtime_enabled;
	bool evicted; /* its queues stand still (fault.c) */
	struct sim_process *next;
};

struct sim_gpu {
	struct sim *sim;
	struct gpu_info info;
	unsigned index, minor;
	struct sim_node node;
	bool gone;
	uint64_t vram_used; /* by all processes (memory.c) */

	/* The run list as the driver counts it (gpu.c): pm_calc_rlib_size(). */
	unsigned compute_queues, sdma_queues, gws_queues; /* active ones, of all processes */
	unsigned processes;                               /* with at least one queue here */
	bool oversubscribed; /* also with MES, which has no run list and warns of nothing */
	bool too_many_queues, too_many_processes, too_many_gws; /* why */

	/* What went by: never goes down. */
	uint64_t run_lists;         /* unmapped and sent again: every queue of the GPU was preempted
			       * (before MES), or one queue taken out and put in */
	uint64_t oversubscriptions; /* from not to so */
	unsigned peak_queues, peak_processes;

	unsigned resets;

	struct sim_queue *hqds[SIM_HQDS_MAX]; /* compute slots; index = pipe + pipes * queue */
	struct timing *timing;                /* NULL: dispatches take no time */
	uint64_t late_ns;                     /* that an end was told after its time, at most */
};

struct sim {
	struct sim_world world;
	struct sim_gpu gpus[SIM_GPUS_MAX];
	size_t n_gpus;
	struct sim_process *processes; /* the dead that are not torn down included */
	uint64_t serial;
	uint64_t teardown_ns;
	bool timing;
	unsigned kfd_minor;           /* of the KFD version: which driver this is */
	uint64_t topology_generation; /* counts up when a GPU goes */
	unsigned nodes;               /* of the topology, CPUs too */
	uint64_t queue_serial;
	uint64_t mmio[SIM_GPUS_MAX]; /* place of the page of remapped registers (arena.c) */
	struct sim_fault *faults;
	uint64_t block_ns[SIM_GROUP_MAX + 1]; /* of work-groups by threads; 0: the model's */
	unsigned shift; /* of each mask that a client sets, in bits: a fault */
	struct sim_wait *waits;
	struct sim_smi *smis;
	struct sim_arena *arena;
	struct sim_record *record; /* of what was and is: state.c */
				   /* Whatever a file needs more goes here, with its file named. */
};

/* ---- lookups (core.c) ---- */
/* Alive, the primary context; NULL. */
struct sim_process *sim_find_process(const struct sim *sim, pid_t pid);

/* The same or the next context of the process, which is alive; NULL: there is no more. */
struct sim_process *sim_find_context(struct sim_process *from, pid_t pid);
struct sim_gpu *sim_find_gpu(struct sim *sim, uint32_t gpu_id); /* not gone; NULL */
struct sim_queue *sim_find_queue(struct sim_process *process, unsigned id);

/* ---- a process's memory as its GPU sees it (memory.c) ---- */

/* First buffers in the arena, then the process's own memory. 0 or -EFAULT. */
int sim_get(struct sim_process *process, uint64_t address, void *buf, size_t size);
int sim_put(struct sim_process *process, uint64_t address, const void *buf, size_t size);

/* ---- events (event.c) ---- */

/* As the interrupt of a queue does: sets it and wakes who waits. Unknown ids are nothing. */
void sim_raise(struct sim_process *process, uint32_t event_id);

/* ---- queues and the run list (queue.c, gpu.c) ---- */

/* After each change of a queue that is or was active: counts anew, places queues in slots,
 * preempts. */
void sim_gpu_submit(struct sim_gpu *gpu, uint64_t now_ns);

/* False with MES. */
bool sim_gpu_has_run_list(const struct sim_gpu *gpu);

/* ---- the packet processors (packet.c, aql.c, sdma.c) ---- */

/* The 8 bytes of a queue's doorbell, and what the hardware finds there at first. */
uint64_t sim_doorbell(const struct sim_queue *queue);
void sim_doorbell_init(struct sim_queue *queue); /* all ones */

/* Looks at one active queue; true if anything was done. *next_ns is brought forward to when
 * it wants to be looked at again. */
bool sim_queue_work(struct sim_queue *queue, uint64_t now_ns, uint64_t *next_ns);

/* The timing model says that the dispatch which this queue gave it has ended: it retires. */
void sim_queue_ended(struct sim_queue *queue, uint64_t end_ns);

/* ---- the mapper (mask.c) ---- */

/* Fills queue->engines from its mask and the GPU's geometry: mqd_symmetrically_map_cu_mask(). */
void sim_mask_map(struct sim_queue *queue);

/* ---- the record (state.c) ---- */
void sim_record_process(struct sim_process *process); /* opened /dev/kfd for the first time */
void sim_record_queue(struct sim_queue *queue);       /* made */
void sim_record_change(struct sim_queue *queue);      /* mask, priority or percentage changed */
void sim_record_queue_gone(struct sim_queue *queue);
/* A dispatch that the timing model had, and that began at queue->began, has ended. */
void sim_record_dispatch(const struct sim_queue *queue, const struct timing_kernel *kernel,
			 uint64_t end_ns);
void sim_record_free(struct sim *sim);
