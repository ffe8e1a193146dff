import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a group, until SIGTERM. --topic, --group, --protocol (classic; consumer: the broker assigns,
 * KIP-848), --assignor (range, roundrobin, sticky, cooperative-sticky; of the classic protocol), --instance ID
 * (a static member). Events: assigned, revoked, lost, records (with the values), committed, left.
 */
final class GroupMember implements ConsumerRebalanceListener {
    private static final Map<String, String> ASSIGNORS =
            Map.of(
                    "range", "org.apache.kafka.clients.consumer.RangeAssignor",
                    "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
                    "sticky", "org.apache.kafka.clients.consumer.StickyAssignor",
                    "cooperative-sticky",
                            "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    private final KafkaConsumer<String, String> consumer;
    private final Map<TopicPartition, OffsetAndMetadata> uncommitted = new HashMap<>();

    private GroupMember(Properties settings) {
        consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    static int run(Arguments arguments) {
        Properties settings = arguments.clientSettings();
        settings.put("group.id", arguments.get("group"));
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("group.protocol", arguments.get("protocol", "classic"));
        if (settings.get("group.protocol").equals("classic")) {
            settings.put(
                    "partition.assignment.strategy", ASSIGNORS.get(arguments.get("assignor", "range")));
        }
        if (arguments.has("instance")) {
            settings.put("group.instance.id", arguments.get("instance"));
        }
        GroupMember member = new GroupMember(settings);
        Stop stop = new Stop(member.consumer::wakeup);
        member.consume(arguments.get("topic"));
        stop.done();
        return 0;
    }

    private void consume(String topic) {
        try (consumer) {
            consumer.subscribe(List.of(topic), this);
            Report.event("started");
            while (true) {
                take(consumer.poll(Duration.ofMillis(200)));
                commit();
            }
        } catch (WakeupException asked) {
            // Asked to stop.
        }
        Report.event("left");
    }

    private void take(ConsumerRecords<String, String> records) {
        for (TopicPartition partition : records.partitions()) {
            List<ConsumerRecord<String, String>> batch = records.records(partition);
            ConsumerRecord<String, String> last = batch.get(batch.size() - 1);
            Report.event(
                    "records",
                    "partition", partition.partition(),
                    "offset", batch.get(0).offset(),
                    "values", batch.stream().map(ConsumerRecord::value).collect(Collectors.toList()));
            uncommitted.put(partition, new OffsetAndMetadata(last.offset() + 1));
        }
    }

    private void commit() {
        if (uncommitted.isEmpty()) {
            return;
        }
        try {
            consumer.commitSync(Map.copyOf(uncommitted));
            Report.event("committed", "offsets", uncommitted);
            uncommitted.clear();
        } catch (RebalanceInProgressException | RetriableException again) {
            Report.event("commit_again", "why", Report.text(again));
        } catch (CommitFailedException gone) {
            Report.event("commit_failed", "why", Report.text(gone));
            uncommitted.clear();
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        Report.event("assigned", "partitions", numbers(partitions), "all", numbers(consumer.assignment()));
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        commit();
        uncommitted.keySet().removeAll(partitions);
        Report.event("revoked", "partitions", numbers(partitions));
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        uncommitted.keySet().removeAll(partitions);
        Report.event("lost", "partitions", numbers(partitions));
    }

    private static List<Integer> numbers(Collection<TopicPartition> partitions) {
        return partitions.stream().map(TopicPartition::partition).sorted().collect(Collectors.toList());
    }
}
