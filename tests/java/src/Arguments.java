import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/** {@code --name value} pairs; {@code --set key=value} goes to the clients as it is. */
final class Arguments {
    private final Map<String, String> values = new HashMap<>();
    private final Properties settings = new Properties();

    Arguments(List<String> words) {
        for (int i = 0; i + 1 < words.size(); i += 2) {
            String name = words.get(i).substring(2);
            String value = words.get(i + 1);
            if (name.equals("set")) {
                int equals = value.indexOf('=');
                settings.put(value.substring(0, equals), value.substring(equals + 1));
            } else {
                values.put(name, value);
            }
        }
    }

    String get(String name) {
        String value = values.get(name);
        if (value == null) {
            throw new IllegalArgumentException("--" + name + " is missing");
        }
        return value;
    }

    String get(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }

    long number(String name, long otherwise) {
        String value = values.get(name);
        return value == null ? otherwise : Long.parseLong(value);
    }

    boolean has(String name) {
        return values.containsKey(name);
    }

    /** What every client gets: where the brokers are, and quick back-offs. */
    Properties clientSettings() {
        Properties all = new Properties();
        all.put("bootstrap.servers", get("bootstrap"));
        all.put("retry.backoff.ms", "50");
        all.put("reconnect.backoff.ms", "20");
        all.put("reconnect.backoff.max.ms", "200");
        all.put("request.timeout.ms", "10000");
        all.putAll(settings);
        return all;
    }
}
