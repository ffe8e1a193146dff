import java.math.BigDecimal;
import java.util.Collection;
import java.util.Map;

/**
 * One event a line: {@code {"event":"committed","t":12.345678,"records":100}}; t: seconds on the machine's
 * monotonic clock, which other processes read too.
 */
final class Report {
    private Report() {}

    /** Names and values in turn; numbers, texts, collections and maps. */
    static synchronized void event(String event, Object... namesAndValues) {
        StringBuilder line = new StringBuilder("{\"event\":").append(quoted(event));
        line.append(",\"t\":").append(new BigDecimal(System.nanoTime()).movePointLeft(9));
        for (int i = 0; i < namesAndValues.length; i += 2) {
            line.append(',').append(quoted((String) namesAndValues[i])).append(':');
            append(line, namesAndValues[i + 1]);
        }
        System.out.println(line.append('}'));
        System.out.flush();
    }

    private static void append(StringBuilder line, Object value) {
        if (value instanceof Number || value instanceof Boolean || value == null) {
            line.append(value);
        } else if (value instanceof Collection) {
            String separator = "[";
            for (Object each : (Collection<?>) value) {
                line.append(separator);
                append(line, each);
                separator = ",";
            }
            line.append(separator.equals("[") ? "[]" : "]");
        } else if (value instanceof Map) {
            String separator = "{";
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                line.append(separator).append(quoted(String.valueOf(entry.getKey()))).append(':');
                append(line, entry.getValue());
                separator = ",";
            }
            line.append(separator.equals("{") ? "{}" : "}");
        } else {
            line.append(quoted(String.valueOf(value)));
        }
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 0x20) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }

    /** An exception with its causes, on one line. */
    static String text(Throwable thrown) {
        StringBuilder out = new StringBuilder();
        for (Throwable each = thrown; each != null; each = each.getCause()) {
            out.append(out.length() == 0 ? "" : " <- ").append(each);
        }
        return out.toString();
    }
}
