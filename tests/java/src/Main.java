import java.util.List;
import java.util.Map;

/**
 * The Java clients that the process tests run, one command each: {@code Main COMMAND --name value …}. What
 * happens is told on standard output, one JSON object a line; the clients' own logs go to standard error.
 */
public final class Main {
    private interface Command {
        int run(Arguments arguments) throws Exception;
    }

    private static final Map<String, Command> COMMANDS =
            Map.of(
                    "AdminCalls", AdminCalls::run,
                    "IdempotentProducer", IdempotentProducer::run,
                    "AssignedConsumer", AssignedConsumer::run,
                    "GroupMember", GroupMember::run,
                    "TransactionalCopy", TransactionalCopy::run,
                    "WordCount", WordCount::run);

    private Main() {}

    public static void main(String[] words) throws Exception {
        Command command = words.length == 0 ? null : COMMANDS.get(words[0]);
        if (command == null) {
            System.err.println("usage: Main " + COMMANDS.keySet() + " --name value …");
            System.exit(2);
        }
        List<String> rest = List.of(words).subList(1, words.length);
        int code = command.run(new Arguments(rest));
        System.out.flush();
        // A client's thread that does not end must not keep the program.
        Runtime.getRuntime().halt(code);
    }
}
