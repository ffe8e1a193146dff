import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** The verbs of ../README.md on Java's kafka-clients. */
public final class Client {
    private static final Gson GSON = new Gson().newBuilder().serializeNulls().create();
    private static final BufferedReader INPUT =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

    private final JsonObject arguments;
    private final String topic;

    private Client(JsonObject arguments) {
        this.arguments = arguments;
        this.topic = arguments.get("topic").getAsString();
    }

    public static void main(String[] words) throws Exception {
        Client client = new Client(JsonParser.parseString(words[1]).getAsJsonObject());
        switch (words[0]) {
            case "topics": client.topics(); break;
            case "produce": client.produce(); break;
            case "consume": client.consume(); break;
            case "group": client.group(); break;
            case "transaction": client.transaction(); break;
            case "failover": client.failover(); break;
            default: throw new IllegalArgumentException(words[0]);
        }
        tell(event("done"));
    }

    // ---- lines ----

    private static JsonObject event(String name) {
        JsonObject line = new JsonObject();
        line.addProperty("event", name);
        return line;
    }

    private static synchronized void tell(JsonObject line) {
        byte[] bytes = (GSON.toJson(line) + "\n").getBytes(StandardCharsets.UTF_8);
        System.out.write(bytes, 0, bytes.length);
        System.out.flush();
    }

    private static List<JsonObject> inputLines() throws IOException {
        List<JsonObject> lines = new ArrayList<>();
        for (String line = INPUT.readLine(); line != null; line = INPUT.readLine()) {
            lines.add(JsonParser.parseString(line).getAsJsonObject());
        }
        return lines;
    }

    /** Becomes true when the input ends. */
    private static AtomicBoolean inputEnd() {
        AtomicBoolean ended = new AtomicBoolean();
        Thread reader = new Thread(() -> {
            try {
                while (INPUT.readLine() != null) {}
            } catch (IOException why) {
                // As good as an end.
            }
            ended.set(true);
        });
        reader.setDaemon(true);
        reader.start();
        return ended;
    }

    private static String textOf(JsonElement value) {
        return value == null || value.isJsonNull() ? null : value.getAsString();
    }

    private Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments.get("bootstrap").getAsString());
        return settings;
    }

    private KafkaProducer<String, String> producer(Properties settings) {
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    private KafkaConsumer<String, String> consumer(Properties settings) {
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private ProducerRecord<String, String> record(JsonObject line) {
        ProducerRecord<String, String> record =
                new ProducerRecord<>(topic, line.get("partition").getAsInt(), line.get("timestamp").getAsLong(),
                        textOf(line.get("key")), textOf(line.get("value")));
        for (JsonElement header : line.getAsJsonArray("headers")) {
            JsonArray pair = header.getAsJsonArray();
            record.headers().add(pair.get(0).getAsString(), pair.get(1).getAsString().getBytes(StandardCharsets.UTF_8));
        }
        return record;
    }

    private static void tellRecords(ConsumerRecords<String, String> records) {
        for (ConsumerRecord<String, String> record : records) {
            JsonObject line = event("record");
            line.addProperty("partition", record.partition());
            line.addProperty("offset", record.offset());
            line.add("key", GSON.toJsonTree(record.key()));
            line.add("value", record.value() == null ? JsonNull.INSTANCE : GSON.toJsonTree(record.value()));
            JsonArray headers = new JsonArray();
            for (Header header : record.headers()) {
                JsonArray pair = new JsonArray();
                pair.add(header.key());
                pair.add(new String(header.value(), StandardCharsets.UTF_8));
                headers.add(pair);
            }
            line.add("headers", headers);
            line.addProperty("timestamp", record.timestamp());
            tell(line);
        }
    }

    // ---- topics ----

    private void topics() throws Exception {
        try (Admin admin = Admin.create(settings())) {
            NewTopic wanted = new NewTopic(topic, arguments.get("partitions").getAsInt(), (short) -1)
                    .configs(Map.of("retention.ms", "7200000"));
            admin.createTopics(List.of(wanted)).all().get();
            tell(event("created"));
            try {
                admin.createTopics(List.of(wanted)).all().get();
            } catch (java.util.concurrent.ExecutionException why) {
                JsonObject line = event("refused");
                line.addProperty("error", String.valueOf(why.getCause()));
                tell(line);
            }
            tellListed(admin);
            tellDescribed(admin);
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(arguments.get("partitions").getAsInt() + 2)))
                    .all().get();
            tellDescribed(admin);
            admin.deleteTopics(List.of(topic)).all().get();
            tellListed(admin);
        }
    }

    private void tellListed(Admin admin) throws Exception {
        JsonObject line = event("listed");
        line.addProperty("found", admin.listTopics().names().get().contains(topic));
        tell(line);
    }

    private void tellDescribed(Admin admin) throws Exception {
        JsonObject line = event("described");
        line.addProperty("partitions",
                admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size());
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        line.addProperty("retention",
                admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms").value());
        tell(line);
    }

    // ---- records ----

    private void produce() throws Exception {
        List<JsonObject> lines = inputLines();
        for (JsonElement codec : arguments.getAsJsonArray("codecs")) {
            Properties settings = settings();
            settings.put("compression.type", codec.getAsString());
            settings.put("linger.ms", "20");
            List<Future<?>> sent = new ArrayList<>();
            try (KafkaProducer<String, String> producer = producer(settings)) {
                for (JsonObject line : lines) {
                    if (line.get("codec").getAsString().equals(codec.getAsString())) {
                        sent.add(producer.send(record(line)));
                    }
                }
                producer.flush();
                for (Future<?> each : sent) {
                    each.get();
                }
            }
            JsonObject line = event("produced");
            line.add("codec", codec);
            line.addProperty("count", sent.size());
            tell(line);
        }
    }

    private void consume() {
        AtomicBoolean ended = inputEnd();
        Properties settings = settings();
        settings.put("isolation.level", arguments.get("isolation").getAsString());
        try (KafkaConsumer<String, String> consumer = consumer(settings)) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (int i = 0; i < arguments.get("partitions").getAsInt(); i++) {
                partitions.add(new TopicPartition(topic, i));
            }
            consumer.assign(partitions);
            String from = arguments.get("from").getAsString();
            if (from.equals("earliest")) {
                consumer.seekToBeginning(partitions);
            } else if (from.equals("latest")) {
                consumer.seekToEnd(partitions);
            } else {
                seekToTime(consumer, partitions, Long.parseLong(from));
            }
            partitions.forEach(consumer::position);
            tell(event("ready"));
            int wanted = arguments.get("count").getAsInt();
            while (wanted > 0 && !ended.get()) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
                tellRecords(records);
                wanted -= records.count();
            }
        }
    }

    private static void seekToTime(
            KafkaConsumer<String, String> consumer, List<TopicPartition> partitions, long timestamp) {
        Map<TopicPartition, Long> times = new java.util.HashMap<>();
        partitions.forEach(each -> times.put(each, timestamp));
        Map<TopicPartition, OffsetAndTimestamp> found = consumer.offsetsForTimes(times);
        Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
        for (TopicPartition each : partitions) {
            consumer.seek(each, found.get(each) == null ? ends.get(each) : found.get(each).offset());
        }
    }

    // ---- groups ----

    private void group() {
        AtomicBoolean ended = inputEnd();
        Properties settings = settings();
        settings.put("group.id", arguments.get("group").getAsString());
        settings.put("heartbeat.interval.ms", "300");
        try (KafkaConsumer<String, String> consumer = consumer(settings)) {
            consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    TreeSet<Integer> all = new TreeSet<>();
                    consumer.assignment().forEach(each -> all.add(each.partition()));
                    JsonObject line = event("assigned");
                    line.add("partitions", GSON.toJsonTree(all));
                    tell(line);
                }
            });
            while (!ended.get()) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
                tellRecords(records);
                if (!records.isEmpty()) {
                    consumer.commitSync();
                    tell(event("committed"));
                }
            }
        }
    }

    // ---- transactions ----

    private void transaction() throws Exception {
        List<JsonObject> lines = inputLines();
        Properties settings = settings();
        settings.put("transactional.id", arguments.get("id").getAsString());
        try (KafkaProducer<String, String> producer = producer(settings)) {
            producer.initTransactions();
            int last = arguments.get("transactions").getAsInt() - 1;
            for (int i = 0; i <= last; i++) {
                producer.beginTransaction();
                for (JsonObject line : lines) {
                    if (line.get("transaction").getAsInt() == i) {
                        producer.send(record(line));
                    }
                }
                if (i == last) {
                    producer.sendOffsetsToTransaction(
                            Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(arguments.get("offset").getAsLong())),
                            new ConsumerGroupMetadata(arguments.get("group").getAsString()));
                }
                if (i % 2 == 1) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
                tell(event(i % 2 == 1 ? "aborted" : "committed"));
            }
        }
    }

    // ---- a leader dies ----

    private void failover() throws Exception {
        AtomicBoolean ended = inputEnd();
        int partitions = arguments.get("partitions").getAsInt();
        try (KafkaProducer<String, String> producer = producer(settings())) {
            for (int n = 0; !ended.get(); n++) {
                int number = n;
                producer.send(new ProducerRecord<>(topic, n % partitions, null, String.valueOf(n)), (place, why) -> {
                    JsonObject line = event(why == null ? "acknowledged" : "failed");
                    line.addProperty("n", number);
                    if (why != null) {
                        line.addProperty("error", String.valueOf(why));
                    }
                    tell(line);
                });
                Thread.sleep(arguments.get("pause_ms").getAsLong());
            }
        }
    }
}
