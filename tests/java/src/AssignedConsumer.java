import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Reads a topic from its beginning to what is its end now, in all partitions. --topic, --isolation
 * (read_uncommitted, read_committed). One event a record, and the ends at last: with read_committed those are
 * the last stable offsets.
 */
final class AssignedConsumer {
    private AssignedConsumer() {}

    static int run(Arguments arguments) {
        String topic = arguments.get("topic");
        Properties settings = arguments.clientSettings();
        settings.put("isolation.level", arguments.get("isolation", "read_uncommitted"));
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> partitions =
                    consumer.partitionsFor(topic).stream()
                            .map(each -> new TopicPartition(each.topic(), each.partition()))
                            .collect(Collectors.toList());
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    Report.event(
                            "record",
                            "partition", record.partition(),
                            "offset", record.offset(),
                            "key", record.key(),
                            "value", record.value());
                }
            }
            Report.event("done", "ends", ends);
        }
        return 0;
    }
}
