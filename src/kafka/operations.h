/* operations.h: what a client is told it may do, where it asks: bit n is Kafka's operation n.
 * Everybody may everything until there are access rules. */
#ifndef MOONMQ_KAFKA_OPERATIONS_H
#define MOONMQ_KAFKA_OPERATIONS_H

/* read 3, write 4, create 5, delete 6, alter 7, describe 8, describe configs 10, alter configs 11
 */
#define KAFKA_TOPIC_OPERATIONS \
    (1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 11)
/* create 5, alter 7, describe 8, cluster action 9, describe configs 10, alter configs 11,
 * idempotent write 12 */
#define KAFKA_CLUSTER_OPERATIONS (1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12)

#endif
