/* workload.h: what the virtual clients do, all at once: producers (plain, idempotent), consumers,
 * a committer of offsets, and one who creates, grows, alters, deletes and recreates topics; in some
 * runs also those of a domain: transactions, groups of three kinds, compaction, deletions.
 *
 * Topics "data0" … exist for the whole run; "churn0" … come and go; each domain has topics of its
 * own, made when the data topics are there. Clients learn the leader from answers, retry as real
 * ones do, and tell the history what they were told. The clients of the domains draw from a stream
 * of their own: what the others do in a seed does not hang on them.                             */
#ifndef MOONMQ_SIM_WORKLOAD_H
#define MOONMQ_SIM_WORKLOAD_H

#include "sim/history.h"
#include "sim/sim_client.h"

#define SIM_DATA_TOPICS_MAX   3
#define SIM_CHURN_TOPICS      2
#define SIM_PARTITIONS_MAX    3
#define SIM_DOMAIN_TOPICS_MAX 6
#define SIM_PAY_TOPICS        2
#define SIM_PAYERS_MAX        3
#define SIM_READERS_MAX       2
#define SIM_TOPIC_CHANGES_MAX 6

/* Kinds of clients that only some runs have: bits. */
enum sim_domain {
    SIM_TRANSACTIONS = 1,
    SIM_GROUPS = 2,
    SIM_COMPACTION = 4,
    SIM_DELETIONS = 8,
    SIM_MODERN_GROUPS = 16,
    SIM_NATIVE_GROUPS = 32,
    SIM_DOMAINS_ALL = 63,
};

enum sim_request_kind {
    SIM_REQUEST_PRODUCE,
    SIM_REQUEST_PRODUCE_IDEMPOTENT,
    SIM_REQUEST_FETCH,
    SIM_REQUEST_LIST_OFFSETS,
    SIM_REQUEST_COMMIT,
    SIM_REQUEST_FETCH_COMMITTED,
    SIM_REQUEST_ADMIN,
    SIM_REQUEST_KEYED,
    SIM_REQUEST_TXN_INIT,
    SIM_REQUEST_TXN_ADD,
    SIM_REQUEST_TXN_PRODUCE,
    SIM_REQUEST_TXN_OFFSET,
    SIM_REQUEST_TXN_END,
    SIM_REQUEST_FETCH_STABLE,
    SIM_REQUEST_GROUP,
    SIM_REQUEST_DELETE_RECORDS,
    SIM_REQUEST_MODERN_GROUP,
    SIM_REQUEST_NATIVE_GROUP,
    SIM_REQUEST_KIND_COUNT
};
#define SIM_FAULT_COLUMNS 48

struct sim_workload_options {
    int plain, idempotent, consumers;
    int data_topics, partitions;        /* partitions: of each data topic */
    int64_t pause_us_min, pause_us_max; /* between two batches of a producer */
    int records_max;                    /* a batch */
    uint16_t value_bytes_max;
    bool commits, churns;
    bool weak_acks; /* some plain producers ask for acks=leader */
    bool idle_spells;
    int64_t retention_bytes; /* of the last data topic; 0: none */
    uint32_t domains;        /* enum sim_domain */
    bool steady_groups;      /* members neither leave nor fall silent */
    bool leaves_keys;        /* compaction: now and then keys are left as they are for good */
    /* Static mode: topic i is node i's, all of one name, and no client of it asks another node. */
    bool own_topics;
    uint32_t written; /* bits: topics that producers choose from */
    int read_topic;   /* that consumers read */
};

struct sim_topic {
    char name[HISTORY_TOPIC_BYTES];
    bool exists; /* a creation was acknowledged, no deletion tried since */
    struct uuid uid;
    uint32_t partitions;
    int32_t epoch; /* of the leader that acknowledged it */
    /* of a domain's topic: what it is created with */
    const char *change_names[SIM_TOPIC_CHANGES_MAX];
    char change_values[SIM_TOPIC_CHANGES_MAX][24];
    uint32_t change_count;
};

struct sim_founder;
struct sim_keeper;
struct sim_payer;
struct sim_committed_reader;
struct sim_grouper;
struct sim_producer;
struct sim_consumer;
struct sim_committer;
struct sim_churner;
struct sim_deleter;
struct sim_modern_grouper;
struct sim_native_grouper;

struct sim_workload {
    struct sim_group *group;
    struct sim_world *world;
    struct sim_clients clients;
    struct history history;
    struct sim_verdict *verdict;
    struct sim_workload_options options;
    struct random random;
    struct sim_topic topics[SIM_DATA_TOPICS_MAX];
    int topics_ready;
    bool draining; /* producers finish what they began, and begin nothing */
    struct sim_producer *producers[SIM_CLIENTS_MAX];
    struct sim_consumer *consumers[SIM_CLIENTS_MAX];
    struct sim_committer *committer;
    struct sim_churner *churner;
    int producer_count, consumer_count;
    struct random domain_random;
    struct sim_topic domain_topics[SIM_DOMAIN_TOPICS_MAX];
    int domain_topic_count;
    struct sim_founder *founder; /* NULL: no domain */
    struct sim_keeper *keeper;   /* NULL: no compaction */
    struct sim_topic *pay_topics[SIM_PAY_TOPICS];
    struct sim_payer *payers[SIM_PAYERS_MAX];
    struct sim_committed_reader *readers[SIM_READERS_MAX];
    int payer_count, reader_count;
    struct sim_grouper *grouper;               /* NULL: no groups */
    struct sim_deleter *deleter;               /* NULL: no deletions */
    struct sim_modern_grouper *modern_grouper; /* NULL: no groups of the new protocol */
    struct sim_native_grouper *native_grouper; /* NULL: no native groups */
    /* Inside the process: acks=all is answered for what ends at `end`. NULL: nobody listens. */
    void (*acknowledged)(void *context, struct sim_node *node, const struct partition *partition,
                         int64_t end);
    void *acknowledged_context;
    uint64_t admin_acknowledged; /* changes of churn topics */
    uint64_t active_faults;      /* bits, set by faults.c */
    /* Requests sent while a fault was active, for the coverage table; the last column: none was. */
    uint64_t coverage[SIM_REQUEST_KIND_COUNT][SIM_FAULT_COLUMNS];
};

void sim_workload_init(struct sim_workload *workload, struct sim_group *group,
                       struct sim_verdict *verdict, const struct sim_workload_options *options,
                       uint64_t seed);
void sim_workload_deinit(struct sim_workload *workload);
void sim_workload_start(struct sim_workload *workload);
/* No new batches from here on. */
void sim_workload_drain(struct sim_workload *workload);
/* Every request that insists on an answer has one; consumers have read all that is acknowledged. */
/* The final logs were read: what follows from all of them together. */
void sim_workload_judge(struct sim_workload *workload);
bool sim_workload_drained(const struct sim_workload *workload, char *why, size_t why_bytes);

/* The churner: all data topics are there. */
void sim_workload_topics_ready(struct sim_workload *workload);
/* With own topics: this one is there. */
void sim_workload_topic_ready(struct sim_workload *workload, int topic);
/* The founder: so are those of the domains. */
void sim_workload_domains_ready(struct sim_workload *workload);
/* A domain's topic to be made; valid for the whole run. */
struct sim_topic *sim_workload_add_topic(struct sim_workload *workload, const char *name,
                                         uint32_t partitions);
void sim_topic_change(struct sim_topic *topic, const char *name, int64_t value);
void sim_topic_change_text(struct sim_topic *topic, const char *name, const char *value);
void sim_workload_count(struct sim_workload *workload, enum sim_request_kind kind);
int64_t sim_workload_pause_us(struct sim_workload *workload);
/* Inside a process: the partition, checked against what was acknowledged about its topic; NULL with
 * *status. A leader of before that may not know of it: one whose clocks stood still with its
 * machine learns that it leads no more from others only. */
struct partition *sim_workload_partition(struct sim_workload *workload, struct sim_node *node,
                                         const struct sim_topic *topic, uint32_t partition,
                                         enum status *status);

/* Each kind of client: producer.c, consumer.c, committer.c, churner.c. */
struct sim_producer *sim_producer_new(struct sim_workload *workload, int client, bool idempotent,
                                      int acks);
void sim_producer_start(struct sim_producer *producer);
int sim_producer_topic(const struct sim_producer *producer);
void sim_producer_free(struct sim_producer *producer);
bool sim_producer_drained(const struct sim_producer *producer);

struct sim_consumer *sim_consumer_new(struct sim_workload *workload, int client);
void sim_consumer_start(struct sim_consumer *consumer);
void sim_consumer_free(struct sim_consumer *consumer);
bool sim_consumer_drained(const struct sim_consumer *consumer, char *why, size_t why_bytes);

struct sim_committer *sim_committer_new(struct sim_workload *workload, int client);
void sim_committer_start(struct sim_committer *committer);
void sim_committer_free(struct sim_committer *committer);
bool sim_committer_drained(const struct sim_committer *committer);

/* Also creates the data topics, first thing. */
struct sim_churner *sim_churner_new(struct sim_workload *workload, int client);
void sim_churner_start(struct sim_churner *churner);
void sim_churner_free(struct sim_churner *churner);
bool sim_churner_drained(const struct sim_churner *churner);
/* Writes keys over and over into a compacted topic, and reads them: keeper.c. */
struct sim_keeper *sim_keeper_new(struct sim_workload *workload, int client);
void sim_keeper_start(struct sim_keeper *keeper);
void sim_keeper_free(struct sim_keeper *keeper);
bool sim_keeper_drained(const struct sim_keeper *keeper);

/* One transactional id, and who uses it: transactor.c. Takes as many clients as it has instances.
 */
struct sim_payer *sim_payer_new(struct sim_workload *workload, int index, int *client);
void sim_payer_start(struct sim_payer *payer);
void sim_payer_free(struct sim_payer *payer);
bool sim_payer_drained(const struct sim_payer *payer, char *why, size_t why_bytes);
/* After the final logs were read. */
void sim_payer_judge(struct sim_payer *payer);

/* Reads what is committed: committed_reader.c. */
struct sim_committed_reader *sim_committed_reader_new(struct sim_workload *workload, int client);
void sim_committed_reader_start(struct sim_committed_reader *reader);
void sim_committed_reader_free(struct sim_committed_reader *reader);
bool sim_committed_reader_drained(const struct sim_committed_reader *reader, char *why,
                                  size_t why_bytes);

/* A consumer group and its members, a client each: grouper.c. */
struct sim_grouper *sim_grouper_new(struct sim_workload *workload, int *client);
void sim_grouper_start(struct sim_grouper *grouper);
void sim_grouper_free(struct sim_grouper *grouper);
bool sim_grouper_drained(const struct sim_grouper *grouper, char *why, size_t why_bytes);
/* The newest that a member was given; 0: none yet. */
int32_t sim_grouper_generation(const struct sim_grouper *grouper);

/* The same of the new protocol: modern_grouper.c. */
struct sim_modern_grouper *sim_modern_grouper_new(struct sim_workload *workload, int *client);
void sim_modern_grouper_start(struct sim_modern_grouper *grouper);
void sim_modern_grouper_free(struct sim_modern_grouper *grouper);
bool sim_modern_grouper_drained(const struct sim_modern_grouper *grouper, char *why,
                                size_t why_bytes);
/* The newest epoch that a member was given; 0: none yet. */
int32_t sim_modern_grouper_epoch(const struct sim_modern_grouper *grouper);

/* The same of native members: native_grouper.c. */
struct sim_native_grouper *sim_native_grouper_new(struct sim_workload *workload, int *client);
void sim_native_grouper_start(struct sim_native_grouper *grouper);
void sim_native_grouper_free(struct sim_native_grouper *grouper);
bool sim_native_grouper_drained(const struct sim_native_grouper *grouper, char *why,
                                size_t why_bytes);
/* The newest generation that a member was given; 0: none yet. */
int32_t sim_native_grouper_generation(const struct sim_native_grouper *grouper);

/* Deletes the oldest records of data topics: deleter.c. */
struct sim_deleter *sim_deleter_new(struct sim_workload *workload, int client);
void sim_deleter_start(struct sim_deleter *deleter);
void sim_deleter_free(struct sim_deleter *deleter);
bool sim_deleter_drained(const struct sim_deleter *deleter);

/* Makes the topics of the domains. */
struct sim_founder *sim_founder_new(struct sim_workload *workload, int client);
void sim_founder_start(struct sim_founder *founder);
void sim_founder_free(struct sim_founder *founder);
bool sim_founder_is_done(const struct sim_founder *founder);

/* What must (not) be in a catalog that applied everything; false stops. Called at the end. */
void sim_churner_check_catalog(struct sim_churner *churner, struct sim_node *node);

#endif
