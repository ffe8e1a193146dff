import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.FencedInstanceIdException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Consume, transform, produce: each record of --from goes to the same partition of --to as "copy of VALUE",
 * and its offset with it, in transactions of about --batch records. What can be aborted is aborted and done
 * again from the committed offsets; what is fatal to a producer gets a new one.
 *
 * <p>--from, --to, --group, --id (transactional id), --batch (100), --assign true (all partitions, without the
 * group's protocol), --abort-every N (each N-th transaction is aborted on purpose). Until SIGTERM.
 */
final class TransactionalCopy implements ConsumerRebalanceListener {
    private final Arguments arguments;
    private final String from;
    private final String to;
    private final long abortEvery;
    private KafkaConsumer<String, String> consumer;
    private KafkaProducer<String, String> producer;
    private long transactions;
    private long copied;

    private TransactionalCopy(Arguments arguments) {
        this.arguments = arguments;
        from = arguments.get("from");
        to = arguments.get("to");
        abortEvery = arguments.number("abort-every", 0);
    }

    static int run(Arguments arguments) {
        TransactionalCopy copy = new TransactionalCopy(arguments);
        Stop stop = new Stop(() -> {});
        copy.copyAll(stop);
        stop.done();
        return 0;
    }

    private void copyAll(Stop stop) {
        openConsumer();
        openProducer();
        Report.event("started");
        while (!stop.asked()) {
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
            if (!records.isEmpty()) {
                copy(records);
            }
        }
        producer.close(Duration.ofSeconds(5));
        consumer.close();
        Report.event("done", "transactions", transactions, "copied", copied);
    }

    private void openConsumer() {
        Properties settings = arguments.clientSettings();
        settings.put("group.id", arguments.get("group"));
        settings.put("isolation.level", "read_committed");
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("max.poll.records", arguments.get("batch", "100"));
        consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        if (arguments.has("assign")) {
            List<TopicPartition> all = partitionsOf(from);
            consumer.assign(all);
            goBackToCommitted();
        } else {
            consumer.subscribe(List.of(from), this);
        }
    }

    private List<TopicPartition> partitionsOf(String topic) {
        return retried("partitionsFor", () -> consumer.partitionsFor(topic)).stream()
                .map(each -> new TopicPartition(each.topic(), each.partition()))
                .collect(Collectors.toList());
    }

    private void openProducer() {
        Properties settings = arguments.clientSettings();
        settings.put("transactional.id", arguments.get("id"));
        settings.putIfAbsent("transaction.timeout.ms", "30000");
        settings.putIfAbsent("max.block.ms", "30000");
        producer =
                retried(
                        "initTransactions",
                        () -> {
                            KafkaProducer<String, String> opened =
                                    new KafkaProducer<>(
                                            settings, new StringSerializer(), new StringSerializer());
                            try {
                                opened.initTransactions();
                                return opened;
                            } catch (KafkaException failed) {
                                opened.close(Duration.ZERO);
                                throw failed;
                            }
                        });
    }

    // ---- one transaction ----

    private void copy(ConsumerRecords<String, String> records) {
        transactions++;
        try {
            producer.beginTransaction();
            for (ConsumerRecord<String, String> record : records) {
                producer.send(
                        new ProducerRecord<>(
                                to, record.partition(), record.key(), "copy of " + record.value()));
            }
            producer.sendOffsetsToTransaction(offsetsAfter(records), consumer.groupMetadata());
            if (abortEvery > 0 && transactions % abortEvery == 0) {
                producer.flush();
                throw new KafkaException("aborted on purpose");
            }
            commit();
            copied += records.count();
            Report.event("committed", "records", records.count());
        } catch (ProducerFencedException
                | OutOfOrderSequenceException
                | AuthorizationException
                | UnsupportedVersionException
                | FencedInstanceIdException fatal) {
            beginAnew(fatal);
        } catch (KafkaException abortable) {
            abort(abortable);
        }
    }

    /** A commit that ran out of time may be asked for again, and nothing else may be done. */
    private void commit() {
        for (int tries = 0; ; tries++) {
            try {
                producer.commitTransaction();
                return;
            } catch (TimeoutException late) {
                Report.event("commit_again", "why", Report.text(late));
                if (tries == 10) {
                    throw late;
                }
            }
        }
    }

    private void abort(KafkaException why) {
        Report.event("aborted", "why", Report.text(why));
        try {
            producer.abortTransaction();
        } catch (KafkaException fatal) {
            beginAnew(fatal);
            return;
        }
        goBackToCommitted();
    }

    private void beginAnew(KafkaException why) {
        boolean known = why instanceof ProducerFencedException || why instanceof InvalidProducerEpochException;
        Report.event("fatal", "why", Report.text(why), "fenced", known);
        producer.close(Duration.ZERO);
        openProducer();
        goBackToCommitted();
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsetsAfter(
            ConsumerRecords<String, String> records) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (TopicPartition partition : records.partitions()) {
            List<ConsumerRecord<String, String>> batch = records.records(partition);
            offsets.put(
                    partition, new OffsetAndMetadata(batch.get(batch.size() - 1).offset() + 1));
        }
        return offsets;
    }

    // ---- positions ----

    private void goBackToCommitted() {
        Set<TopicPartition> mine = new HashSet<>(consumer.assignment());
        Map<TopicPartition, OffsetAndMetadata> committed =
                retried("committed", () -> consumer.committed(mine));
        List<TopicPartition> untouched = new ArrayList<>();
        for (TopicPartition partition : mine) {
            OffsetAndMetadata offset = committed.get(partition);
            if (offset == null) {
                untouched.add(partition);
            } else {
                consumer.seek(partition, offset);
            }
        }
        if (!untouched.isEmpty()) { // none would mean all
            consumer.seekToBeginning(untouched);
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        Report.event("assigned", "partitions", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        Report.event("revoked", "partitions", partitions);
    }

    private interface Attempt<T> {
        T make();
    }

    /** While a group elects a leader, a call may run out of time. */
    private static <T> T retried(String what, Attempt<T> attempt) {
        for (int tries = 0; ; tries++) {
            try {
                return attempt.make();
            } catch (WakeupException asked) {
                throw asked;
            } catch (KafkaException failed) {
                Report.event("again", "call", what, "why", Report.text(failed));
                if (tries == 20) {
                    throw failed;
                }
                java.util.concurrent.locks.LockSupport.parkNanos(100000000);
            }
        }
    }
}
