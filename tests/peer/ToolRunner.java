import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command-line tools one after the other in this JVM, because starting one for each takes longer than
 * the tool. A line of standard input is {"main": class, "arguments": […], "stdin": text}; the line answered is
 * {"exit": code, "out": text, "err": text}. What a tool would do at the end of its process is done at its end here.
 */
public final class ToolRunner {
    /** Thrown where a tool would end the process: an Error, because tools catch exceptions. */
    private static final class Ended extends Error {
        private static final long serialVersionUID = 1L;

        Ended() {
            super("", null, false, false);
        }

        /** Empty, because some tools print what they catch. */
        @Override
        public String toString() {
            return "";
        }
    }

    /** Standard output or error, kept by everybody who once asked for it, going where the running tool's goes. */
    private static final class Redirected extends OutputStream {
        private volatile ByteArrayOutputStream target = new ByteArrayOutputStream();

        String restart() {
            String had = target.toString(StandardCharsets.UTF_8);
            target = new ByteArrayOutputStream();
            return had;
        }

        @Override
        public void write(int value) {
            target.write(value);
        }

        @Override
        public void write(byte[] bytes, int from, int count) {
            target.write(bytes, from, count);
        }
    }

    private static final ObjectMapper JSON = new ObjectMapper();

    private final Redirected out = new Redirected();
    private final Redirected err = new Redirected();
    private final List<Runnable> atExit = new ArrayList<>();
    private Integer exit;

    private ToolRunner() {}

    public static void main(String[] words) throws Exception {
        InputStream in = System.in;
        PrintStream answers = System.out;
        ToolRunner runner = new ToolRunner();
        runner.takeOver();
        BufferedReader lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            byte[] answer = JSON.writeValueAsBytes(runner.run(JSON.readTree(line)));
            answers.write(answer);
            answers.write('\n');
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private void takeOver() {
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        Exit.setExitProcedure(this::end);
        Exit.setHaltProcedure(this::end);
        Exit.setShutdownHookAdder((name, hook) -> atExit.add(hook));
    }

    private void end(int code, String message) {
        if (exit == null) {
            exit = code;
        }
        throw new Ended();
    }

    private ObjectNode run(JsonNode asked) {
        List<String> arguments = new ArrayList<>();
        asked.get("arguments").forEach(each -> arguments.add(each.asText()));
        exit = null;
        out.restart();
        err.restart();
        System.setIn(new ByteArrayInputStream(asked.path("stdin").asText("").getBytes(StandardCharsets.UTF_8)));
        int code = call(asked.get("main").asText(), arguments.toArray(new String[0]));
        atExit.forEach(Runnable::run);
        atExit.clear();
        System.out.flush();
        System.err.flush();
        return JSON.createObjectNode().put("exit", code).put("out", out.restart()).put("err", err.restart());
    }

    private int call(String name, String[] arguments) {
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return exit == null ? 0 : exit;
        } catch (InvocationTargetException thrown) {
            if (thrown.getCause() instanceof Ended) {
                return exit;
            }
            thrown.getCause().printStackTrace();
            return 1; // as the JVM does
        } catch (ReflectiveOperationException missing) {
            throw new IllegalArgumentException(name, missing);
        }
    }
}
