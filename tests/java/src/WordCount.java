import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Kafka Streams, exactly_once_v2: counts the words of --from into --to (word as key, count as text), with state
 * below --state, until SIGTERM. --application ID.
 */
final class WordCount {
    private WordCount() {}

    static int run(Arguments arguments) throws InterruptedException {
        KafkaStreams streams = new KafkaStreams(topology(arguments).build(), settings(arguments));
        CountDownLatch asked = new CountDownLatch(1);
        streams.setStateListener(
                (now, before) -> Report.event("state", "now", now.name(), "before", before.name()));
        streams.setUncaughtExceptionHandler(
                why -> {
                    Report.event("thread_replaced", "why", Report.text(why));
                    return StreamThreadExceptionResponse.REPLACE_THREAD;
                });
        Stop stop = new Stop(asked::countDown);
        streams.start();
        asked.await();
        streams.close(Duration.ofSeconds(15));
        Report.event("done");
        stop.done();
        return 0;
    }

    private static StreamsBuilder topology(Arguments arguments) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(arguments.get("from"), Consumed.with(Serdes.String(), Serdes.String()))
                .flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
                .count(Materialized.as("counts"))
                .toStream()
                .mapValues(count -> Long.toString(count))
                .to(arguments.get("to"), Produced.with(Serdes.String(), Serdes.String()));
        return builder;
    }

    private static Properties settings(Arguments arguments) {
        Properties settings = arguments.clientSettings();
        settings.put("application.id", arguments.get("application"));
        settings.put("state.dir", arguments.get("state"));
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("commit.interval.ms", "100");
        settings.put("num.stream.threads", arguments.get("threads", "1"));
        settings.put("statestore.cache.max.bytes", "0");
        settings.put("consumer.auto.offset.reset", "earliest");
        settings.put("consumer.session.timeout.ms", "6000");
        settings.put("consumer.heartbeat.interval.ms", "500");
        settings.put("producer.transaction.timeout.ms", "20000");
        settings.put("replication.factor", "-1");
        return settings;
    }
}
