import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Sends the numbers from 0 up, each to partition number % partitions, idempotent, five requests in flight.
 * --topic, --partitions, --records, --rate (a second; none: as fast as it goes).
 */
final class IdempotentProducer {
    private final AtomicLong acknowledged = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();

    static int run(Arguments arguments) {
        return new IdempotentProducer().send(arguments);
    }

    private int send(Arguments arguments) {
        String topic = arguments.get("topic");
        int partitions = (int) arguments.number("partitions", 1);
        long records = arguments.number("records", 100000);
        long rate = arguments.number("rate", 0);
        Properties settings = arguments.clientSettings();
        settings.putIfAbsent("enable.idempotence", "true");
        settings.putIfAbsent("acks", "all");
        settings.putIfAbsent("max.in.flight.requests.per.connection", "5");
        settings.putIfAbsent("linger.ms", "1");
        settings.putIfAbsent("delivery.timeout.ms", "120000");
        long began = System.nanoTime();
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            Report.event("started");
            for (long i = 0; i < records && failed.get() == 0; i++) {
                pace(began, i, rate);
                producer.send(
                        new ProducerRecord<>(topic, (int) (i % partitions), null, Long.toString(i)),
                        (metadata, error) -> delivered(error));
            }
            producer.flush();
        }
        Report.event("done", "acknowledged", acknowledged.get(), "failed", failed.get());
        return failed.get() == 0 ? 0 : 1;
    }

    private void delivered(Exception error) {
        if (error != null) {
            if (failed.getAndIncrement() < 3) {
                Report.event("failed", "why", Report.text(error));
            }
        } else if (acknowledged.incrementAndGet() % 10000 == 0) {
            Report.event("acknowledged", "records", acknowledged.get());
        }
    }

    private static void pace(long began, long i, long rate) {
        if (rate == 0) {
            return;
        }
        long ahead = began + i * 1000000000L / rate - System.nanoTime();
        if (ahead > 1000000) {
            java.util.concurrent.locks.LockSupport.parkNanos(ahead);
        }
    }
}
